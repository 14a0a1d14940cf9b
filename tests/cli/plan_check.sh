# SPDX-License-Identifier: Apache-2.0
# The best three again on more detailed networks: the answer is one of the words, in text and in JSON; time is bounded.
set -e
cat > tiny.json <<'END'
{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": 2, "n_embd": 128, "n_head": 4, "n_positions": 256, "vocab_size": 1000}
END
fixed=tp=2,cp=1,pp=1,recompute=none,micro-batch=1,sequence-parallel=off
orrery plan tiny.json --machine dgx-h100:2 --batch 8 --seq 128 --fix $fixed --top 3 -q --check --json > checked
python3 - checked <<'END'
import json, sys
for k in json.load(open(sys.argv[1]))["checks"]:
    print(k["network"], len(k["step_s"]), all(t > 0 for t in k["step_s"]), "order_holds" in k, k["ended"])
END
# One node has no links of its own between devices: messages only.
orrery plan tiny.json --machine dgx-h100:1 --batch 8 --seq 128 --fix $fixed --check -q | sed -n '/^the best again/,/^  the order holds on/p'
# A step that does not end in time says so, and the plans are printed all the same.
orrery plan llama-3-8b --machine dgx-h100:8 --batch 256 --seq 4096 --fix tp=4,pp=2,micro-batch=1,recompute=none,cp=1,zero=1,pipeline=1f1b,sequence-parallel=on --check --check-seconds 1 -q > long
grep -q 'the limit of 1 s is reached' long
grep -c '^  1 ' long
