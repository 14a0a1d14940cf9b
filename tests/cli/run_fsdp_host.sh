# SPDX-License-Identifier: Apache-2.0
# What FSDP2 and DTensor cost the host, per layer of a model too small for the device to be the limit.
cat >tiny.json <<'END'
{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":256,"intermediate_size":512,"num_hidden_layers":8,
"num_attention_heads":4,"num_key_value_heads":4,"vocab_size":1000,"max_position_embeddings":2048,"rms_norm_eps":1e-5,
"tie_word_embeddings":false}
END
# Microseconds per layer: $1 software, then options of the step.
layer() {
    software=$1
    shift
    for layers in 8 16; do
        orrery -q stage tiny.json --layers $layers --seq 64 --software "$software" "$@" -o t.orr >/dev/null
        orrery -q run t.orr --machine hgx-h200 --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["simulated_ns"])'
    done | paste -s -d' ' | awk '{print int(($2 - $1) / 8000 + 0.5)}'
}
near() { # name, figure, by hand
    awk -v is="$2" -v by="$3" 'BEGIN {exit !(is > 0.95 * by && is < 1.05 * by)}' && echo "$1" || echo "$1: $2 us, by hand $3"
}
plain=$(layer fsdp2-eager --dp 8 --batch 8)
# 600 + 280 us for weights, 620 for gradients, three collectives of 40, and three copies of some 11 to issue
near "FSDP2" $(($(layer fsdp2-eager --dp 8 --batch 8 --zero 3) - plain)) 1650
# kept after the forward pass: gathered once
near "FSDP2, weights kept" $(($(layer fsdp2-eager --dp 8 --batch 8 --zero 2) - plain)) 1320
# ten collectives of 250 us, four for each pass and two for inputs of weight gradients
near "DTensor" $(($(layer fsdp2-eager --tp 2) - $(layer fsdp2-eager))) 2500
# Megatron's, for comparison: ten of 12 us are hidden or small
test $(($(layer megatron-core --tp 2) - $(layer megatron-core))) -lt 400 && echo "Megatron"
