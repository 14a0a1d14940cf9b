# SPDX-License-Identifier: Apache-2.0
# room: nsight
# Every command of docs/cookbook.md works, in its order.  What a reader brings along: a config.json, what nccl-tests
# printed, a host and a device trace of PyTorch.
cp "$ORR_GOLDEN"/h200/tiny_host_et.json.gz host_et.json.gz
cp "$ORR_GOLDEN"/h200/tiny_kineto.json.gz kineto.json.gz
printf '{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 16,
"num_key_value_heads": 8, "intermediate_size": 5632, "vocab_size": 32000, "max_position_embeddings": 4096}' >config.json
orrery nccl-tests --machine dgx-h100 -b 1K -e 256M >nccl.txt
awk '/^```sh$/ {on = 1; next} /^```$/ {on = 0} on' "$ORR_ROOT/docs/cookbook.md" >commands.sh
[ "$(grep -c '^orrery ' commands.sh)" -ge 30 ] || echo "too few commands"
bash -e commands.sh >out.txt 2>err.txt || { echo "status $?"; tail -n 3 err.txt; }
[ -s step.html ] && [ -s measured.html ] && echo "two reports"
grep -c ' ranks finished after' out.txt
