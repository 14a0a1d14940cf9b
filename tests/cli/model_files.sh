# SPDX-License-Identifier: Apache-2.0
# A file of ours, a config.json in a folder, an unknown type with its remark, standard input.
orrery model qwen3-8b --print | tee mine.yml
orrery model mine.yml --json | grep -o '"total": [0-9]*'
mkdir checkpoint
cat >checkpoint/config.json <<'END'
{"model_type": "brand_new", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
 "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 1000}
END
orrery model checkpoint --seq 2000 | grep total
gzip -c mine.yml | orrery model - | head -1
