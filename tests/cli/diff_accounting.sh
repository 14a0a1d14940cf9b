# SPDX-License-Identifier: Apache-2.0
# One run, one answer: what diff says of where the time goes is what run said of the same two runs.
orrery stage -q gpt2 --pp 2 --tp 2 --dp 2 --batch 8 -o step.orr >stage.txt
for machine in dgx-a100 dgx-h100; do
    orrery run -q step.orr --machine $machine --timeline $machine.json --json >$machine.run
done
orrery diff dgx-a100.json dgx-h100.json -n 1
orrery diff dgx-a100.json dgx-h100.json --json >diff.json
python3 - <<'PY'
import json
parts = json.load(open("diff.json"))["parts_of_a_rank_ps"]
for k, machine in enumerate(("dgx-a100", "dgx-h100")):
    run = json.load(open(machine + ".run"))
    keys = {"compute": "compute_ns", "exposed_communication": "exposed_communication_ns", "remote_memory": "remote_memory_ns",
            "host": "host_ns", "waiting": "waiting_ns", "bubble": "bubble_ns", "idle": "idle_ns"}
    worst = max(abs(parts[p][k] / 1000 - (run["over_ranks"][n] or {"mean": 0})["mean"]) for p, n in keys.items())
    whole = sum(v[k] for v in parts.values()) / 1000
    print(machine, "as run has it" if worst < 2 else f"{worst:.0f} ns apart",
          "adds up" if abs(whole - run["simulated_ns"]) < 8 else f"adds up to {whole} of {run['simulated_ns']}")
PY
