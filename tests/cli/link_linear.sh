# SPDX-License-Identifier: Apache-2.0
# Trouble costs what an event costs: 60,000 events without a start and 20,000 nodes of one id, a line each, in a second.
# Places are looked for only where the program ends; counted from the start of the file for each it takes a minute.
python3 - <<'EOF' || exit 1
import json
operator = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 5, "dur": 2,
            "args": {"External id": 1, "Record function id": 9}}
step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 1, "dur": 9, "args": {}}
bad = {key: value for key, value in operator.items() if key != "ts"}
with open("bad.json", "w") as out:
    out.write('{"traceEvents": [\n' + ",\n".join(map(json.dumps, [step, operator, *[bad] * 60000])) + "]}\n")
with open("device.json", "w") as out:
    out.write('{"traceEvents": [\n' + ",\n".join(map(json.dumps, [step, operator])) + "]}\n")
io = {"values": [], "shapes": [], "types": []}


def node(ident, name, parent, rf):
    numbers = {"rf_id": rf, "fw_parent": 0, "seq_id": -1, "scope": 0, "tid": 1, "fw_tid": 0}
    attrs = [{"name": key, "type": "uint64", "value": value} for key, value in numbers.items()]
    return {"id": ident, "name": name, "ctrl_deps": parent, "inputs": io, "outputs": io,
            "attrs": attrs + [{"name": "op_schema", "type": "string", "value": ""}]}


nodes = [node(1, "[pytorch|profiler|execution_trace|process]", 1, 0),
         node(2, "[pytorch|profiler|execution_trace|thread]", 1, 0), node(5, "aten::add", 2, 9)]
head = '{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "", "start_ts": 1, "finish_ts": 2, "nodes": [\n'
with open("host.json", "w") as out:
    out.write(head + ",\n".join(map(json.dumps, nodes)) + "]}\n")
with open("same_id.json", "w") as out:
    out.write(head + ",\n".join(map(json.dumps, nodes + nodes[2:] * 20000)) + "]}\n")
EOF
timeout 20 orrery link host.json bad.json -o bad.et
timeout 20 orrery link same_id.json device.json -o same.et
timeout 20 orrery link --compat same_id.json device.json -o same.json
