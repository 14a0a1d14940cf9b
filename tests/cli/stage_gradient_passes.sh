# SPDX-License-Identifier: Apache-2.0
# Gradients of micro-batches: added up by the product (Megatron-Core), by a pass over bf16 and fp32 (FSDP2), or cast by one
# pass and added by another (DeepSpeed, bf16; its fp16 gradients stay as they are).
passes() {
    orrery stage -q gpt2 --layers 1 --vocab 1024 --seq 128 --batch 2 --micro-batch 1 "$@" -o g.orr >/dev/null
    printf '%s:' "$*"
    orrery -q view json g.orr -r 0 -f jsonl | grep 'mb1.layer0.ffn.up.wgrad' | grep -o 'accumulate\|elementwise [^;"]*' | sed 's/^/ /' |
        tr '\n' ','
    echo
}
passes --software megatron-core --grads-fp32
passes --software fsdp2-fused
passes --software megatron-deepspeed
passes --software megatron-deepspeed --dtype fp16
# Keys and values of eight heads, repeated for 32: by the PyTorch of 2024, for both passes.
for software in torch-compile torch-compile-2024; do
    orrery stage -q llama-3-8b --layers 1 --seq 128 --software $software -o k.orr >/dev/null
    printf '%s:' $software
    orrery -q view json k.orr -r 0 -f jsonl | grep 'attn.core' | grep -o 'elementwise bf16 read=[0-9]* write=[0-9]*' | sort | uniq -c |
        sed 's/^ */ /' | tr '\n' ','
    echo
done
# FlashAttention 2 draws more for the same operations, which a limit of 500 W shows.
orrery stage -q llama-3-8b --layers 2 --seq 65536 --software torch-compile-2024 -o f.orr >/dev/null
time_of() {
    orrery run f.orr --hardware "$1" --json | sed -n 's/.*"simulated_ns": \([0-9]*\).*/\1/p'
}
echo "500 W over 700 W: $(($(time_of h100-500w) * 100 / $(time_of h100))) %"
