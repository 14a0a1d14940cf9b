# SPDX-License-Identifier: Apache-2.0
# Files of hybrids, what is not certain, and what is refused in words.
cat >qwen.json <<'END'
{"model_type": "qwen3_5", "tie_word_embeddings": false, "text_config": {"model_type": "qwen3_5_text",
 "hidden_size": 256, "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
 "head_dim": 64, "intermediate_size": 512, "vocab_size": 1000, "full_attention_interval": 4,
 "linear_conv_kernel_dim": 4, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
 "linear_num_key_heads": 4, "linear_num_value_heads": 8, "attn_output_gate": true,
 "mtp_num_hidden_layers": 1}}
END
orrery model qwen.json --seq 512 --tensors
orrery model qwen.json --print >own.yml
orrery model own.yml --seq 512 --json | tail -n +4 >own.txt
orrery model qwen.json --seq 512 --json -q | tail -n +4 | cmp - own.txt && echo the same model
orrery stage qwen.json --tp 2 --dp 2 --seq 512 -o step.orr
orrery check step.orr
orrery stage qwen.json --cp 2 --seq 512
echo "status $?"
orrery serve qwen.json
echo "status $?"
echo "--- not certain"
sed 's/qwen3_5_text/brand_new/; s/"attn_output_gate": true/"num_routed_experts": 64/' qwen.json >new.json
orrery model new.json --seq 512 | grep certain
orrery model new.json --seq 512 --json -q | grep -o '"note.*'
echo "--- refused"
for type in t5 bert jetmoe rwkv7 deepseek_v4 nemotron-nas; do
    echo "{\"model_type\": \"$type\", \"hidden_size\": 64}" >$type.json
    orrery model $type.json 2>&1
done
