# SPDX-License-Identifier: Apache-2.0
# Both objects are JSON; the first is shown.
orrery model gpt2 --seq 1 --past 1000 --json --tensors | tee one.json
orrery model --list --json >all.json
python3 - <<'END'
import json
one = json.load(open("one.json"))
print(one["format"], one["parameters"]["total"], one["model"]["name"])
models = json.load(open("all.json"))["models"]
print(len(models), sum(m["parameters"] for m in models if m["model"]["name"].startswith("gpt2")))
END
