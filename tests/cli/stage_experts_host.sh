# SPDX-License-Identifier: Apache-2.0
# What an eager layer of experts costs the host: more than its kernels take with few tokens, nothing as a CUDA graph; attention
# in fp8; activation and casts of experts inside their products; the bias of experts in passes of its own.
time_of() { # MODEL OPTION...
    orrery -q stage "$@" --seq "${SEQ:-4096}" --dp 8 --ep 8 --layers 2 --batch 8 -o s.orr > /dev/null &&
        orrery -q run s.orr --machine dgx-b200:1 --json | sed -n 's/.*"simulated_ns": *\([0-9]*\).*/\1/p' | head -1
}
# less WHAT A B [TIMES]: A is less than B, by as many times
less() {
    awk -v what="$1" -v a="$2" -v b="$3" -v t="${4:-1}" 'BEGIN { print what ": " (a > 0 && a * t < b ? "less" : "not less, " a " " b) }'
}

eager=$(time_of qwen3-30b-a3b --dtype mxfp8 --software megatron-core)
layers=$(time_of qwen3-30b-a3b --dtype mxfp8 --software megatron-core-layers)
graph=$(time_of qwen3-30b-a3b --dtype mxfp8 --software megatron-core-graph)
attention=$(time_of qwen3-30b-a3b --dtype mxfp8 --software megatron-core-graph --fp8-attention)
router=$(time_of qwen3-30b-a3b --dtype mxfp8 --software megatron-core-router)
less "attention and router as graphs than eager" $layers $eager 1.1
less "attention and router as graphs than the router alone" $layers $router 1.03
less "the router as a graph than eager" $router $eager 1.03
less "all as a graph than layers" $graph $layers 1.1
less "attention in fp8 than in bf16" $attention $graph 1.01
wide=$(SEQ=128; time_of qwen3-30b-a3b --dtype bf16 --software megatron-core)
narrow=$(SEQ=128; time_of qwen3-30b-a3b --dtype mxfp8 --software megatron-core)
less "few tokens in 16 bits than cast to 8" $wide $narrow 1.1

# 16 experts on a device and 128 on eight: an expert more costs the host more.
few=$(SEQ=128; time_of mixtral-8x7b --dtype mxfp8 --software megatron-core)
many=$(SEQ=128; time_of qwen3-30b-a3b --dtype mxfp8 --software megatron-core)
less "one expert on a device than sixteen" $few $many 1.3

# Passes of a bias: bytes of the kernels in the traces.
orrery -q stage gpt-oss-20b --dp 8 --ep 8 --layers 1 --batch 8 --seq 256 -o b.orr > /dev/null
orrery -q view json b.orr -r 0 -f jsonl | grep 'layer0.moe.down' | grep -c 'elementwise'
orrery -q stage gpt-oss-20b --dp 8 --ep 8 --layers 1 --batch 8 --seq 256 --software megatron-core-graph -o b.orr > /dev/null
orrery -q view json b.orr -r 0 -f jsonl | grep 'layer0.moe.down' | grep -c 'elementwise' || true
