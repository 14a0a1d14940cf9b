# SPDX-License-Identifier: Apache-2.0
# Delayed scaling: after each pass through a model chunk all ranks of a stage agree on scales, or those of tensor parallelism;
# what follows waits.  Rings of Transformer Engine copy and add beside attention.
made() { # OPTION...
    orrery -q stage llama-3-8b --layers 8 --seq 1024 --tp 2 --pp 2 --dp 4 --batch 16 --pipeline interleaved --chunks 2 --dtype fp8 "$@" -o s.orr > /dev/null
}
reduced() { # RANK
    orrery -q view json s.orr -r $1 -f jsonl | grep -c 'amax.reduce' || true
}
group_of() { # RANK
    orrery -q view json s.orr -r $1 -f jsonl | grep -m1 'amax.reduce' | grep -o '"pg_name"[^}]*'
}
time_of() {
    orrery -q run s.orr --machine dgx-h100:2 --json | sed -n 's/.*"simulated_ns": *\([0-9]*\).*/\1/p' | head -1
}
made
none=$(time_of)
echo "current: $(reduced 0) reductions"
made --fp8-scaling delayed
all=$(time_of)
# 4 micro-batches through 2 chunks, forward and backward
echo "delayed: $(reduced 0) reductions on rank 0, $(reduced 15) on rank 15"
same=$([ "$(group_of 0)" = "$(group_of 7)" ] && echo one group || echo two groups)
other=$([ "$(group_of 0)" = "$(group_of 8)" ] && echo one group || echo two groups)
echo "ranks 0 and 7: $same; 0 and 8, of the next stage: $other"
made --fp8-scaling delayed-tp
some=$(time_of)
echo "delayed-tp: $(reduced 0) reductions"
awk -v a=$none -v b=$some -v c=$all 'BEGIN { print (a < b && b < c ? "each takes longer than the one before" : "not in order: " a " " b " " c) }'
made --fp8-scaling block
block=$(time_of)
echo "block: $(reduced 0) reductions, $(orrery -q view json s.orr -r 0 -f jsonl | grep 'layer0.attn.qkv' | grep -c 'fp8_block') products of blocks of layer 0's queries"
awk -v a=$none -v b=$block 'BEGIN { print (a < b ? "block takes longer than current" : "not longer: " a " " b) }'
orrery -q stage llama-3-8b --fp8-scaling delayed -o s.orr 2>&1 || echo "exit $?"

# With cp 2 the core of attention has two blocks, and passes beside both.
orrery -q stage llama-3-8b --layers 1 --seq 1024 --cp 2 --batch 1 -o r.orr > /dev/null
orrery -q view json r.orr -r 0 -f jsonl | grep 'attn.core' | grep -o 'elementwise' | wc -l | tr -d ' '
orrery -q stage llama-3-8b --layers 1 --seq 1024 --cp 2 --batch 1 --software torch-eager -o r.orr > /dev/null
orrery -q view json r.orr -r 0 -f jsonl | grep 'attn.core' | grep -c 'elementwise' || true
