# SPDX-License-Identifier: Apache-2.0
# A machine whose file names a table of collectives (docs/format/collectives.md), as orrery calibrate nccl writes it: run and plan
# take the times of the table, as nccl-tests does.  Once only nccl-tests read it.
printf 'base: dgx-h100\ncollectives: slow.yml\n' >mine.yml
printf 'name: slow\ngeneration: hopper\nnvls: {rate: 0.2}\nSimple: {rate: 0.2}\nchoice:\n  - {op: all_reduce, algorithm: ring, protocol: Simple}\n' >slow.yml
orrery gen -q all_reduce --ranks 8 --comm-size 268435456 -o ar.orr
for machine in dgx-h100 mine.yml; do
    orrery -q nccl-tests --machine $machine -b 256M -e 256M --json >tests.json
    orrery -q run ar.orr --machine $machine --json >run.json
    python3 - $machine <<'PY'
import json, sys
def find(v, key):
    if isinstance(v, dict):
        if key in v:
            return v[key]
        v = list(v.values())
    return next((x for x in (find(i, key) for i in v if isinstance(i, (dict, list))) if x is not None), None)
alone = find(json.load(open("tests.json")), "time_us")
here = json.load(open("run.json"))["simulated_ns"] / 1e3
print(sys.argv[1], "run as nccl-tests" if abs(here / alone - 1) < 0.01 else f"run {here} us, nccl-tests {alone} us")
open(sys.argv[1] + ".us", "w").write(str(here))
PY
done
python3 -c 'a, b = (float(open(n + ".us").read()) for n in ("dgx-h100", "mine.yml")); print("slower with the table" if b > 2 * a else (a, b))'
orrery stage -q llama-3-8b --tp 8 --batch 8 -o step.orr >/dev/null
for machine in dgx-h100 mine.yml; do
    orrery -q run step.orr --machine $machine --json | sed -n 's/.*"simulated_ns": \([0-9]*\).*/\1/p' >>step.ns
    orrery -q plan gpt2 --machine $machine --batch 16 --seq 1024 --fix tp=2,recompute=none,zero=1 --no-prune --json >all.json
    orrery -q plan gpt2 --machine $machine --batch 16 --seq 1024 --fix tp=2,recompute=none,zero=1 --json >some.json
    python3 - $machine <<'PY'
import json, sys
best = [json.load(open(n))["plans"][0] for n in ("all.json", "some.json")]
print(sys.argv[1], "the bound loses no plan" if best[0]["step_s"] == best[1]["step_s"] else best)
PY
done
awk 'NR == 1 {a = $1} NR == 2 {print ($1 > 1.05 * a ? "a step is slower with it" : a " " $1)}' step.ns
# A table that is broken is an error of run, too.
sed -i 's/rate/rat/' slow.yml
orrery -q run ar.orr --machine mine.yml
echo "status $?"
