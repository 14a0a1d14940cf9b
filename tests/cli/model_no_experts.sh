# SPDX-License-Identifier: Apache-2.0
# A DeepSeek-V3 whose number of experts is missing has 671 G parameters, not the 37 G of a dense one: refused, not guessed.
printf '{"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128,\n "num_key_value_heads": 128, "intermediate_size": 18432, "vocab_size": 129280, "q_lora_rank": 1536,\n "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,\n "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, "first_k_dense_replace": 3%s}\n' '' >config.json
orrery model config.json
echo "status $?"
sed -i 's/}$/, "n_routed_experts": 256}/' config.json
orrery model config.json --json | grep '"total"'
