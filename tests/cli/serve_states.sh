# SPDX-License-Identifier: Apache-2.0
# Models whose layers keep a state of a fixed size: gated delta nets (Qwen3-Next), lightning attention (MiniMax), Mamba beside
# attention (Jamba), Mamba-2, attention and FFNs alone (Nemotron-H), Mamba-2 only.  Caches do not grow where states are.
cat >next.json <<'EOF'
{"model_type": "qwen3_next", "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
 "head_dim": 64, "intermediate_size": 512, "vocab_size": 1024, "full_attention_interval": 4, "linear_conv_kernel_dim": 4,
 "linear_key_head_dim": 32, "linear_value_head_dim": 32, "linear_num_key_heads": 4, "linear_num_value_heads": 8,
 "decoder_sparse_step": 1, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128, "num_experts": 8,
 "num_experts_per_tok": 2, "mlp_only_layers": []}
EOF
cat >lightning.json <<'EOF'
{"model_type": "minimax", "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
 "head_dim": 64, "intermediate_size": 512, "vocab_size": 1024, "num_local_experts": 4, "num_experts_per_tok": 2,
 "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"]}
EOF
cat >jamba.json <<'EOF'
{"model_type": "jamba", "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
 "intermediate_size": 512, "vocab_size": 1024, "attn_layer_period": 4, "attn_layer_offset": 2, "expert_layer_period": 2,
 "expert_layer_offset": 1, "num_experts": 4, "num_experts_per_tok": 2, "mamba_d_state": 16, "mamba_d_conv": 4,
 "mamba_expand": 2, "mamba_dt_rank": 16, "mamba_conv_bias": true, "mamba_proj_bias": false}
EOF
cat >nemotron.json <<'EOF'
{"model_type": "nemotron_h", "hidden_size": 256, "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2,
 "head_dim": 64, "intermediate_size": 512, "vocab_size": 1024, "hybrid_override_pattern": "M-M*-", "mamba_num_heads": 8,
 "mamba_head_dim": 64, "ssm_state_size": 64, "n_groups": 2, "conv_kernel": 4, "expand": 2, "use_conv_bias": true, "use_bias": false}
EOF
cat >mamba2.json <<'EOF'
{"model_type": "mamba2", "hidden_size": 256, "num_hidden_layers": 2, "vocab_size": 1024, "num_heads": 8, "head_dim": 64,
 "state_size": 64, "n_groups": 1, "conv_kernel": 4, "expand": 2}
EOF
served() { # model, options: bytes of caches at their peak
    orrery serve "$@" --json 2>/dev/null | python3 -c '
import json, sys
run = json.load(sys.stdin)
print(" ".join(sys.argv[1:]), run["pools"][0]["caches_peak_bytes"], "B")' "$@"
}
for model in next lightning jamba nemotron mamba2; do
    served $model.json -b 2 -p 160 -n 1
    served $model.json -b 2 -p 320 -n 1
done
# Qwen3-Next by hand: 3 layers with 8 x 32 x 32 + (2 x 4 + 8) x 32 x 3 numbers of 4 bytes, one with 2 x 2 x 64 x 2 bytes a token.
python3 -c 'print(2 * (3 * 4 * (8 * 32 * 32 + 16 * 32 * 3) + 160 * 2 * 2 * 64 * 2), "B")'
served next.json --tp 2 --ep 2 -b 2 -p 160 -n 1
cat >system.json <<'EOF'
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
 "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
 "all-to-all-implementation": ["direct"], "collective-optimization": "localBWAware", "local-mem-bw": 1600, "peak-perf": 989,
 "roofline-enabled": 1}
EOF
printf 'topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 400.0 ]\nlatency: [ 500.0 ]\n' >network.yml
orrery serve -q next.json --tp 2 -b 2 -p 64 -n 4 -o next.orr >/dev/null && orrery run -q --ideal next.orr -n unaware -s system.json -t network.yml | head -n 1
orrery info next.orr --rank 0 --top 100 | grep -o "mixer[.][a-z]*" | sort -u | tr "\n" " "
for wrong in "next.json --decode-tp 1" "next.json --cp 2 --phase prefill" "jamba.json --tp 2" "next.json --tp 3"; do
    orrery serve $wrong
    echo "exit $?"
done
