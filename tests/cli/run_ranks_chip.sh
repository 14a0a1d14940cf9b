# SPDX-License-Identifier: Apache-2.0
# Where a chip times kernels, a rank's slower memory makes those kernels longer that wait for memory, and a slower host
# its waits for the host; both once had no effect.  Folded ranks as well.
orrery stage -q llama-3-8b --layers 2 --batch 1 --seq 2048 --tp 2 -o big.orr >stage.out
orrery stage -q gpt2 --layers 4 --batch 1 --seq 128 --software torch-eager --tp 2 -o small.orr >>stage.out
time_of() { # traces, the entry of rank 1
    printf 'ranks: [{ranks: 1, %s}]' "$2" >ranks.yml
    orrery run -q $1 --machine dgx-h100 --ranks-file ranks.yml --fold verify --json | sed -n 's/^  "simulated_ns": \([0-9]*\),/\1/p'
}
ratio() { # what, bounds of the ratio to the usual time, traces, the entry
    awk -v what="$1" -v least=$2 -v most=$3 -v plain=$(time_of $4 "compute: 1") -v here=$(time_of $4 "$5") 'BEGIN {
        r = here / plain
        print what ": " (r > least && r < most ? "as expected" : r) }'
}
# Optimizer and norms read and write memory, products do not wait for it.
ratio "half the memory rate" 1.05 2 big.orr "memory: 0.5"
ratio "twice the memory rate" 0.9999 1.0001 big.orr "memory: 2" # the other rank is as slow as ever
# The step is the host's.
ratio "half the host's speed" 1.7 2.01 small.orr "host: 0.5"
ratio "both" 1.05 2 big.orr "memory: 0.5, host: 0.9"
