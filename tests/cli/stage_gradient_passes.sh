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
