# SPDX-License-Identifier: Apache-2.0
# Traces without record-function ids, as PyTorch wrote them before 2024: nodes are paired by name, thread and order, also
# where one trace lacks some of them or has others; six collectives are six, and the threads need not come in order.
python3 "$ORR_ROOT/tests/golden/torch_inputs.py" before_2024 . || exit 1
echo "both:"
orrery link host.json device.json -o both.et 2>&1 && orrery check both.et && orrery info both.et | grep -A4 'Nodes by type'
python3 - <<'EOF' || exit 1
import json
device = json.load(open("device.json"))
host = json.load(open("host.json"))
events = device["traceEvents"]
operators = [event for event in events if event["cat"] == "cpu_op"]
lost = [id(event) for event in operators[5::20]]
with open("gaps.json", "w") as out:
    json.dump({**device, "traceEvents": [event for event in events if id(event) not in lost]}, out)
print("left out:", len(lost))
more = dict(operators[0], name="aten::only_here", dur=0)
with open("more.json", "w") as out:
    json.dump({**device, "traceEvents": sum(([event, dict(more, ts=event["ts"], tid=event["tid"])] if event in operators[::7]
                                             else [event] for event in events), [])}, out)
swapped = {71: 72, 72: 71}
with open("threads.json", "w") as out:
    json.dump({**device, "traceEvents": [dict(event, tid=swapped.get(event["tid"], event["tid"])) for event in events]}, out)
with open("other_run.json", "w") as out:
    json.dump({**host, "nodes": [dict(node, name="other::" + node["name"] if i % 15 and node["name"][0] != "[" else node["name"])
                                 for i, node in enumerate(host["nodes"])]}, out)
EOF
for trace in gaps more threads; do
    echo "$trace:"
    orrery link host.json $trace.json -o $trace.et 2>&1 | grep -E 'in the|collectives'
done
orrery link other_run.json device.json -o other.et
echo "status $?"
