# SPDX-License-Identifier: Apache-2.0
# Runs on different machines and networks on one page, with names; results of run --json beside timelines; and a path that
# cannot be written is refused before anything is simulated.
orrery stage -q gpt2 --tp 4 --batch 2 -o step.orr >/dev/null
show() {
    python3 -c '
import json, sys
for run in json.load(sys.stdin)["runs"]:
    options = {o["name"]: o["value"] for o in run["options"]}
    head = run["headline"]
    print(run["name"], "|", run["kind"], "|", options.get("machine"), "|", options.get("compute"), "|",
          "MFU" if head["mfu"] else "no MFU", "of", head["peak_tflops"], head["peak_of"])'
}
orrery report step.orr --machine dgx-a100,dgx-h100 --names old,new --what-if off --json | show
orrery report step.orr --machine dgx-h100 -n fluid,unaware --what-if off --json | show
orrery run -q step.orr --machine dgx-h100 --json >saved.json
orrery run -q step.orr --machine dgx-a100 --timeline line.json >/dev/null
orrery report saved.json line.json --names saved --json | show
orrery report saved.json step.orr --machine dgx-h100 --what-if off --json | python3 -c '
import json, sys
a, b = (run["headline"] for run in json.load(sys.stdin)["runs"])
same = all(abs(a[k] / b[k] - 1) < 1e-6 for k in ("time_ns", "tokens_per_s", "tflops_per_device", "mfu"))
print("saved and simulated again: the same" if same else f"{a} {b}")'
orrery report step.orr --machine dgx-h100 -o nowhere/x.html 2>&1
echo "status $?"
orrery report step.orr 2>&1
echo "status $?"
