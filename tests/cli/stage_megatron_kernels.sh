# SPDX-License-Identifier: Apache-2.0
# What Megatron-Core launches beside products, read in its sources: clamped gates and scaled rotations of gpt-oss operator by
# operator, grouped queries copied, latents split, tokens permuted by a kernel each way, a product for each expert, pages with graphs.
kernels() { # NODE: kernels of layer 0's node, by kind
    orrery -q view json s.orr -r 0 -f jsonl | grep "mb0.layer0.$1\"" | grep -o '"stringVal":"[^"]*"' | grep -o 'elementwise\|gather\|gemm\|grouped' | sort | uniq -c | sed 's/  */ /g' | tr '\n' ' '
    echo "$1"
}
made() { # MODEL OPTION...
    orrery -q stage "$@" --layers 1 --seq 256 --batch 8 -o s.orr > /dev/null
}
time_of() { # MODEL OPTION...
    orrery -q stage "$@" --layers 2 --seq 4096 --batch 8 --dp 8 --ep 8 -o t.orr > /dev/null &&
        orrery -q run t.orr --machine dgx-b200:1 --json | sed -n 's/.*"simulated_ns": *\([0-9]*\).*/\1/p' | head -1
}
made gpt-oss-20b --dp 8 --ep 8
kernels moe.activation
kernels moe.activation.grad
kernels attn.rotary
kernels attn.qkv
kernels attn.qkv.grad
kernels moe.permute
kernels moe.permute.grad
echo "sent once, as a graph:"
made gpt-oss-20b --dp 8 --ep 8 --dispatch once --dtype mxfp8 --software megatron-core-graph
kernels moe.activation
kernels moe.permute
kernels moe.permute.grad
echo "plain gates and rotations:"
made llama-3-8b --dp 8
kernels ffn.activation.grad
kernels attn.rotary
kernels attn.qkv
echo "latents:"
made deepseek-v2-lite --dp 8 --ep 8
kernels attn.rotary

fast=$(time_of gpt-oss-20b --dtype mxfp8 --software megatron-core-graph)
slow=$(time_of gpt-oss-20b --dtype mxfp8 --software megatron-core-graph-2026-06)
awk -v a="$fast" -v b="$slow" 'BEGIN { print (a > 0 && a * 1.04 < b ? "the slow kernel shows" : "the slow kernel does not show: " a " " b) }'
fast=$(time_of qwen3-30b-a3b --dtype mxfp8 --software megatron-core-graph)
slow=$(time_of qwen3-30b-a3b --dtype mxfp8 --software megatron-core-graph-2026-06)
awk -v a="$fast" -v b="$slow" 'BEGIN { print (a > 0 && a == b ? "but not without a bias" : "also without a bias: " a " " b) }'
