# SPDX-License-Identifier: Apache-2.0
# Kernels that torch.compile makes: rotations by the power of two in the width of a row, gradients of norms by rows and
# columns, sums of columns in two parts; and the gradient of a tied table, which is added to that of the head.
model() { # heads, keys, norm, gated, biases, position
    cat >m.json <<EOF
{"format": "orrery-model", "version": 1, "name": "m", "layers": 1, "hidden": 640, "vocab": 32000, "heads": $1, "kv_heads": $2,
 "head_dim": 64, "ffn": 1728, "norm": "$3", "is_gated": $4, "has_ffn_bias": $5, "position": "$6", "is_tied": ${7:-false}}
EOF
}
kernels() { # sequences, a node
    orrery stage -q m.json --batch "$1" --micro-batch "${3:-$1}" --seq 1024 --software "${4:-torch-compile}" --no-master -o t.orr >/dev/null
    orrery -q view json t.orr -f jsonl | grep "\"mb0.$2\"" | grep -o '"[a-z]* [a-z0-9]* [^"]*"' | tr -d '"' | tr ';' '\n' |
        grep -v '^ *\(gemm\|attention\) ' | sed 's/^ */  /'
}
for heads in "9 9" "10 5" "16 4" "16 16" "32 8"; do
    # shellcheck disable=SC2086
    model $heads rms true false rotary
    echo "heads $heads:"
    kernels 8 layer0.attn.rotary.grad
done
for sequences in 1 8; do
    model 10 5 rms true false rotary
    echo "Llama, $sequences x 1,024 tokens: norm, gate:"
    kernels $sequences layer0.ffn.norm.grad
    kernels $sequences layer0.ffn.activation
    kernels $sequences layer0.ffn.activation.grad
    model 10 10 layer false true none
    echo "GPT, $sequences x 1,024 tokens: norm, GELU, bias:"
    kernels $sequences layer0.ffn.norm.grad
    kernels $sequences layer0.ffn.activation
    kernels $sequences layer0.ffn.activation.grad
    kernels $sequences layer0.ffn.down.wgrad
done
model 10 5 rms true false rotary true
for software in torch-eager megatron-core; do
    echo "$software, a tied table, of one micro-batch and of two:"
    kernels 2 embedding.wgrad 2 $software
    kernels 2 embedding.wgrad 1 $software
done
