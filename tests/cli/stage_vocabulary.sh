# SPDX-License-Identifier: Apache-2.0
# Megatron pads the vocabulary to a multiple of 128 rows per tensor-parallel rank (50,257 on four ranks: 12,672 each);
# PyTorch's own tensor parallelism does not.
for software in megatron-core megatron-deepspeed fsdp2-eager; do
    orrery stage -q gpt2 --layers 1 --tp 4 --software $software -o v.orr >/dev/null
    printf '%s: ' $software
    orrery view json v.orr --rank 0 | grep -o '"gemm bf16 m=1024 n=12[0-9]* k=768'
done
# What comes out even is not padded.
orrery stage -q gpt2 --layers 1 --vocab 50688 --tp 4 -o v.orr >/dev/null
orrery view json v.orr --rank 0 | grep -o '"gemm bf16 m=1024 n=12[0-9]* k=768'
