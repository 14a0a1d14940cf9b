# SPDX-License-Identifier: Apache-2.0
# The estimate of orrery serve takes collectives and messages from the same model as a run, so TTFT and TPOT agree: to
# 0.2 % where the power cap does not lower the clock, else to 6 and 3 % (an estimate has a clock per iteration, a run one
# for all of them).
number() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" "$2"; }
like() { # most % of TTFT, of TPOT, the machine, model and options
    ttft=$1 tpot=$2 machine=$3
    shift 3
    orrery serve -q "$@" --machine "$machine" --json -o set.orr >made.json || return
    orrery run -q set.orr --machine "$machine" --json | tr ',' '\n' >run.json
    tr ',' '\n' <made.json >serve.json
    for what in $(grep -q '"next_token_mean_ns": null' run.json && echo first || echo first next); do
        most=$ttft
        [ $what = next ] && most=$tpot
        echo "$what $most $(number ${what}_token_mean_ps serve.json) $(number ${what}_token_mean_ns run.json)"
    done | awk -v what="$machine $*" '
        { off = ($3 / 1e3 / $4 - 1) * 100; if (!(off * off <= $2 * $2)) bad = bad sprintf("; %s token %+.2f %%", $1, off) }
        END { print what (bad ? bad : ": as the run") }'
}
for tp in 1 2 4 8; do
    like 6 3 dgx-h100 llama-3-8b --tp $tp -b 16 -p 512 -n 8
done
like 6 3 dgx-h100 llama-3-8b --tp 4 --dp 2 -b 16 -p 512 -n 8
like 0.2 0.2 dgx-a100 llama-3-8b --tp 2 -b 16 -p 512 -n 8
like 0.2 0.2 dgx-a100 llama-3-8b --tp 8 -b 16 -p 512 -n 8
like 6 3 dgx-h100:2 llama-3-8b --tp 8 --pp 2 -b 16 -p 512 -n 8
like 6 3 dgx-h100:2 qwen3-30b-a3b --tp 4 --dp 4 --ep 16 -b 16 -p 512 -n 4
like 6 3 dgx-h100:2 llama-3-70b --tp 16 -b 16 -p 512 -n 4
like 6 3 dgx-h100:2 llama-3-8b --tp 4 --pp 2 --decode-tp 8 -b 8 -p 512 -n 4
# Several prefill ranks send to the same decode ranks, at the rate of all their NICs.
like 6 10 dgx-h100:2 llama-3.1-8b --cp 8 --decode-tp 8 -b 2 -p 32768 -n 4
like 6 10 dgx-h100:2 llama-3.1-8b --dp 8 --decode-tp 8 -b 8 -p 16384 -n 4
like 0.2 0.2 mi300x llama-3-8b --tp 4 --dp 2 -b 16 -p 512 -n 8
like 0.2 0.2 mi300x llama-3-8b --tp 8 -b 16 -p 512 -n 8
# Blocks of a ring of context-parallel ranks move beside attention; at a node boundary they follow one another sooner.
like 1 1 mi300x llama-3-8b --cp 8 --phase prefill -b 2 -p 8192
like 12 1 dgx-a100:2 llama-3-8b --tp 2 --cp 8 --phase prefill -b 2 -p 8192
like 0.2 0.2 tpu-v5p llama-3-8b --tp 4 -b 16 -p 512 -n 8
# The host launches a turn once it knows the tokens of the one before, so it is ahead of none.
like 6 3 dgx-h100 llama-3-8b -b 8 -p 512 -n 2 --software torch-eager
# The launch of a collective costs it once: here the host is the limit, so no clock sets the two apart.
like 1 0.2 dgx-h100 llama-3-8b --tp 8 -b 8 -p 512 -n 4 --software torch-eager
like 6 3 dgx-h100 llama-3-8b --pp 4 -b 8 -p 512 -n 4 --software torch-compile
like 6 3 dgx-h100 llama-3-8b --tp 4 --pp 2 -b 8 -p 512 -n 4 --software deepspeed
like 1 0.2 mi300x llama-3-8b --tp 8 -b 16 -p 512 -n 4 --software torch-eager
like 1 1 dgx-a100 llama-3-8b --tp 2 -b 16 -p 512 -n 8 --software megatron-core


# tp 8 and two replicas of tp 4: in the order of their runs, and as far apart.
speed() {
    orrery serve -q llama-3-8b --machine dgx-h100 "$@" -b 8 --json -o set.orr | sed -n 's/.*"time_ps": \([0-9]*\).*/\1/p'
    orrery run -q set.orr --machine dgx-h100 --json | sed -n 's/.*"last_token_ns": \([0-9]*\).*/\1/p'
}
echo $(speed --tp 8) $(speed --tp 4 --dp 2) | awk '{
    estimate = $3 / $1; run = $4 / $2
    print (estimate > 1) == (run > 1) && estimate / run < 1.02 && run / estimate < 1.02 ? "same order" : estimate " and " run }'

# Their intervals are equally wide, also where the chip is not measured and much of the time is communication, and where
# each rank has one expert.
wide() { # machine, model and options
    machine=$1
    shift
    orrery serve -q "$@" --machine "$machine" --json -o set.orr | tr -d '\n ' | sed 's/.*"time_ps":\([0-9]*\),.*"interval_ps":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2 \3/' >wide
    echo >>wide
    orrery run -q set.orr --machine "$machine" --json | tr -d '\n ' | sed 's/.*"simulated_ns":\([0-9]*\),"interval_ns":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2 \3/' >>wide
    awk -v what="$machine $*" '{ low[NR] = $2 / $1; high[NR] = $3 / $1 }
        END { print what ": " (low[1] / low[2] < 1.03 && low[2] / low[1] < 1.03 && high[1] / high[2] < 1.03 && high[2] / high[1] < 1.03 ? "as wide" : low[1] " to " high[1] ", run " low[2] " to " high[2]) }' wide
}
wide mi300x llama-3-70b --tp 8 -b 32 -n 4
wide tpu-v5p:2 llama-3-8b --tp 8 -b 32 -n 4
wide hgx-h200:2 mixtral-8x7b --dp 16 --ep 8 -b 128 -p 512 -n 4
