# SPDX-License-Identifier: Apache-2.0
# The best three again on more detailed networks: what was run, what it gave, whether same order, in text and in JSON.
set -e
# Times are those of the networks, which tests of their own hold: here it is which of them are printed, and for what.
plain() { sed -n '/^the best plans on/,/^$/p' | sed -E 's/ +[0-9.]+ (us|ms|s)/ T/g; s/[+-][0-9.]+ %/P/; s/ x [0-9]+\.[0-9]+/ x R/g'; }
cat > tiny.json <<'END'
{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": 2, "n_embd": 128, "n_head": 4, "n_positions": 256, "vocab_size": 1000}
END
fixed=tp=2,cp=1,pp=1,recompute=none,micro-batch=1,sequence-parallel=off
orrery plan tiny.json --machine dgx-h100:2 --batch 8 --seq 128 --fix $fixed --top 3 -q --check --json > checked
python3 - checked <<'END'
import json, sys
for k in json.load(open(sys.argv[1]))["checks"]:
    print(k["network"], k["verdict"], k["order_holds"], [(p["plan"], p["kind"], p["what"], p["step_s"] > 0, p["why_not"]) for p in k["plans"]])
END
# One node has no links of its own between devices: messages only.
orrery plan tiny.json --machine dgx-h100:1 --batch 8 --seq 128 --fix $fixed --check -q | plain
# A step of 64 ranks that is above the budget is cut, and packets go collective by collective.
large="llama-3-8b --machine dgx-h100:8 --batch 256 --seq 4096 --fix tp=4,pp=2,micro-batch=1,recompute=none,cp=1,zero=1,sequence-parallel=on,pipeline=1f1b"
orrery plan $large --check --check-budget 200ms -q | plain
# A budget for nothing says what it would take; one that is no time is refused.
orrery plan tiny.json --machine dgx-h100:2 --batch 8 --seq 128 --fix $fixed --check --check-budget 1us -q | plain
for bad in 0s soon; do orrery plan tiny.json --machine dgx-h100:2 --check --check-budget $bad 2>&1 || echo "status $?"; done
orrery plan tiny.json --machine dgx-h100:2 --check-budget 1s 2>&1 || echo "status $?"
