# SPDX-License-Identifier: Apache-2.0
# Where a machine has no model of collectives, the estimate of orrery serve goes by rates, and knows nodes: experts of other nodes are reached through NICs, tensor-parallel ranks of two
# nodes through the NICs of all of them, devices of a mesh through the links to each other.  What that adds to one link
# rate for all follows from bytes and rates.
ps() { orrery serve -q "$@" --phase prefill -b 32 -p 1024 --ideal --device-memory 1TB --json | sed -n 's/.*"time_ps": \([0-9]*\).*/\1/p'; }
longer() { # name, a machine, its link rate, what it takes longer (us), the rest
    name=$1 machine=$2 rate=$3 want=$4
    shift 4
    here=$(ps "$@" --machine "$machine")
    all=$(ps "$@" --machine "$machine" --link-rate "$rate")
    awk -v all="$all" -v here="$here" -v name="$name" -v want="$want" 'BEGIN {
        us = (here - all) / 1e6
        off = us - want
        printf "%s: %.0f us by hand; %s\n", name, want, off * off <= 1e-4 * want * want ? "so it is" : us " us here"
    }'
}
# Qwen3 30B-A3B, 48 layers, 16 ranks with 2,048 tokens of 2,048 numbers each, every token once to each rank with one of
# its 8 experts: of two all-to-alls half goes to the other node at 50 GB/s, where 15/16 went at 450 GB/s.
longer "ep 16 on two nodes" dgx-h100:2,collectives=none 450GB/s "$(awk 'BEGIN {b = 2048 * 16 * (1 - (15 / 16) ^ 8) * 2048 * 2; printf "%.0f", 96 * (b / 2 / 50e3 - b * 15 / 16 / 450e3)}')" qwen3-30b-a3b --dp 16 --ep 16
longer "ep 8 in each node" dgx-h100:2,collectives=none 450GB/s 0 qwen3-30b-a3b --dp 16 --ep 8
# Llama 3 70B: 161 all-reduces of 32,768 x 8,192 numbers in a ring of 16, at 8 x 50 GB/s instead of 450.
longer "tp 16 on two nodes" dgx-h100:2,collectives=none 450GB/s "$(awk 'BEGIN {printf "%.0f", 161 * 2 * 15 / 16 * 32768 * 8192 * 2 * (1 / 400e3 - 1 / 450e3)}')" llama-3-70b --tp 16
# In a mesh of 8 devices a group of 4 has 3 of 7 links.
longer "tp 4 in a mesh" mi300x:1,collectives=none 448GB/s "$(awk 'BEGIN {printf "%.0f", 161 * 2 * 3 / 4 * 16384 * 8192 * 2 * (1 / 192e3 - 1 / 448e3)}')" llama-3-70b --tp 4 --dp 2
