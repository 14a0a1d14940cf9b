# SPDX-License-Identifier: Apache-2.0
# Plans for serving: the most tokens per second first; under a limit the most sequences that keep it, whatever their number.
set -e
args="llama-3-8b --machine dgx-h100:1 --serve --requests 64 --prompt 256 --output 16 -q"
orrery plan $args --top 3
orrery plan $args --top 1000 --json > free.json
orrery plan $args --top 1000 --max-tpot 3ms --json > kept.json
orrery plan $args --top 1000 --max-tpot 3ms --threads 1 --json | cmp - kept.json
python3 - <<'END'
import json
free, kept = (json.load(open(f))["plans"] for f in ("free.json", "kept.json"))
print(all(a["tokens_per_s"] >= b["tokens_per_s"] for a, b in zip(free, free[1:])))
print(any(p["tpot_s"] > 0.003 for p in free), all(p["tpot_s"] <= 0.003 for p in kept))
# What the limit allows between two that are tried anyway.
print(sorted(p["max_batch"] for p in kept if p["tp"] == 8))
END
# Which limit removes the last plan.
orrery plan $args --max-tpot 1us || echo $?
orrery plan $args --max-ttft 1us || echo $?
