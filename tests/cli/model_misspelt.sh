# SPDX-License-Identifier: Apache-2.0
# A key of a config.json that is a letter off one that was looked for in vain is refused; others are not.
common='"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 8, "vocab_size": 1024,
  "intermediate_size": 512'
for key in num_key_value_head num_key_value_haeds num_key_valu_heads num_key_value_keads; do
    printf '{%s,\n  "%s": 2}' "$common" $key >bad.json
    orrery model bad.json 2>&1
    echo "status $?"
done
printf '{%s, "num_key_value_heads": 2, "num_key_value_head": 4, "bos_token_id": 1, "architectures": ["X"]}' "$common" >good.json
orrery model good.json | sed -n 3p
