# SPDX-License-Identifier: Apache-2.0
# Every way of sharing out a step runs through the simulator without a stall, and nothing is wrong with its traces.
cat > system.json <<'JSON'
{"scheduling-policy": "LIFO", "preferred-dataset-splits": 4, "active-chunks-per-dimension": 2,
 "collective-optimization": "localBWAware", "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
 "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["direct"], "endpoint-delay": 10,
 "roofline-enabled": 1, "peak-perf": 600, "local-mem-bw": 3000}
JSON
try() {
    local ranks=$1
    shift
    printf 'topology: [Switch]\nnpus_count: [%d]\nbandwidth: [400]\nlatency: [500]\n' "$ranks" > network.yml
    orrery stage "$@" -o step.orr > /dev/null 2>&1 || echo "stage $*: status $?"
    orrery check step.orr > /dev/null || echo "check $*: status $?"
    orrery run -q step.orr -s system.json -t network.yml > /dev/null || echo "run $*: status $?"
}
try 16 llama-3-8b --tp 2 --pp 4 --dp 2 --batch 16 --seq 1024
try 16 llama-3-8b --tp 2 --pp 4 --dp 2 --batch 16 --seq 1024 --pipeline gpipe --zero 1
try 16 llama-3-8b --tp 2 --pp 4 --dp 2 --batch 16 --seq 1024 --pipeline interleaved --chunks 4 --recompute selective
try 16 llama-3-8b --tp 2 --pp 4 --dp 2 --batch 16 --seq 1024 --pipeline zero-bubble --no-overlap
try 16 llama-3-8b --tp 2 --pp 4 --dp 2 --batch 16 --seq 1024 --pipeline zb-v
try 16 llama-3-8b --tp 2 --pp 4 --dp 2 --batch 18 --seq 1024 --pipeline dualpipe-v --zero 1 --recompute full
try 16 llama-3.2-1b --tp 2 --pp 4 --dp 2 --batch 16 --seq 512 --pipeline zb-v --steps 2
try 16 deepseek-v3 --pp 2 --dp 8 --ep 8 --batch 32 --seq 512 --pipeline dualpipe-v --ep-overlap --mtp
try 16 llama-3-8b --tp 2 --pp 4 --dp 2 --batch 16 --seq 1024 --pipeline dualpipe --zero 1
try 16 deepseek-v3 --pp 4 --dp 4 --ep 4 --batch 32 --seq 512 --pipeline dualpipe --ep-overlap --mtp --fp8-dispatch --recompute-parts norm,mla-up,activation
try 8 gpt2 --pp 4 --dp 2 --batch 20 --pipeline dualpipe --zero 3
try 16 llama-3-8b --tp 2 --cp 4 --dp 2 --batch 4 --seq 4096 --zero 3 --prefetch 2
try 16 llama-3-8b --tp 4 --cp 4 --seq 4096 --context all-gather --no-sequence-parallel --recompute full
try 24 gpt2 --tp 4 --pp 3 --dp 2 --batch 8 --seq 512 --steps 2 --sync-every-micro-batch --dtype fp32
try 16 mixtral-8x7b --tp 2 --pp 2 --dp 4 --ep 4 --batch 8 --seq 1024 --zero 2 --grads-fp32
try 16 deepseek-v3 --pp 2 --dp 8 --ep 8 --batch 16 --seq 512 --dtype fp8 --no-clipping
try 12 gemma-2-9b --cp 3 --dp 2 --pp 2 --batch 4 --seq 6144 --zero 3
echo done
