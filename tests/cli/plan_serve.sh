# SPDX-License-Identifier: Apache-2.0
# Plans for serving: the most tokens per second first; under a limit the most sequences that keep it, whatever their number.
set -e
args="llama-3-8b --machine dgx-h100:1 --serve --requests 64 --prompt 256 --output 16 -q"
orrery plan $args --top 3
orrery plan $args --top 1000 --json > free.json
orrery plan $args --top 1000 --max-tpot 4ms --json > kept.json
orrery plan $args --top 1000 --max-tpot 4ms --threads 1 --json | cmp - kept.json
python3 - <<'END'
import json
free, kept = (json.load(open(f))["plans"] for f in ("free.json", "kept.json"))
print(all(a["tokens_per_s"] >= b["tokens_per_s"] for a, b in zip(free, free[1:])))
print(any(p["tpot_s"] > 0.004 for p in free), all(p["tpot_s"] <= 0.004 for p in kept))
# What the limit allows between two that are tried anyway.
print(sorted(p["max_batch"] for p in kept if p["tp"] == 4))
END
# Which limit removes the last plan.
orrery plan $args --max-tpot 1us || echo $?
orrery plan $args --max-ttft 1us || echo $?
# The command that is printed gives the same figures, of another data type too, and of experts on several nodes.
again() {
    orrery plan "$@" --serve -q --top 1 | tail -1 | sed 's/^ *//; s/$/ -q --json/' >again.sh
    orrery plan "$@" --serve -q --top 1 --json >plan.json
    sh again.sh >serve.json
    python3 - <<'END'
import json
plan, serve = json.load(open("plan.json"))["plans"][0], json.load(open("serve.json"))["estimate"]
print("again:", round(plan["ttft_s"] * 1e12) == serve["first_token_mean_ps"], round(plan["tpot_s"] * 1e12) == serve["next_token_mean_ps"])
END
}
again llama-3-8b --machine dgx-h100:1 --requests 64 --prompt 256 --output 16
again llama-3-8b --machine dgx-h100:1 --requests 64 --prompt 256 --output 16 --dtype fp8
again qwen3-30b-a3b --machine dgx-h100:2 --requests 64 --prompt 256 --output 4
again llama-3-8b --machine mi300x --devices 4 --requests 64 --prompt 256 --output 4
# Part of the machine; what does not apply is refused.
orrery plan llama-3-8b --machine dgx-h100:1 --devices 4 --requests 16 --prompt 256 --output 4 --serve -q --top 1 --json |
    python3 -c 'import json, sys; print({p["tp"] * p["pp"] * p["replicas"] for p in json.load(sys.stdin)["plans"]})'
for option in "--devices 2,4" "--fix tp=2" "--goal cost" "--software vllm" "--reserve 4GiB" "--csv x.csv"; do
    orrery plan $args $option 2>&1 | head -1
done
