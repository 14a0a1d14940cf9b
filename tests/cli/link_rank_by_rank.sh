# SPDX-License-Identifier: Apache-2.0
# Collectives of gloo do not record their group.  Linked rank by rank nothing tells it: link warns, and the deadlock that
# follows names what works, all ranks at once.  Times of 2^62 ns and more are not taken, and that is said.
python3 - <<'EOF'
import json
import os
os.mkdir("job")
GROUPS = [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 3, "ranks": [0, 1, 2]},
          {"pg_name": "1", "pg_desc": "pair", "pg_size": 2, "ranks": [0, 1]}]
NONE = {"values": [], "shapes": [], "types": [], "strides": []}


def node(number, name, parent, floats, function):
    tensor = {"values": [[9, 9, 0, floats, 4, "cpu"]], "shapes": [[floats]], "types": ["Tensor(float)"], "strides": [[1]]}
    values = {"rf_id": function, "fw_parent": 0, "seq_id": -1, "scope": 7, "tid": 1, "fw_tid": 0, "op_schema": ""}
    return {"id": number, "name": name, "ctrl_deps": parent, "inputs": tensor if floats else NONE, "outputs": NONE,
            "attrs": [{"name": key, "type": "string" if key == "op_schema" else "uint64", "value": value} for key, value in values.items()]}


for rank in range(3):
    events, nodes = [], [node(1, "[pytorch|profiler|execution_trace|process]", 1, 0, 0),
                         node(2, "[pytorch|profiler|execution_trace|thread]", 1, 0, 0)]
    for kind, floats in ("all_reduce", 256), ("all_reduce", 64), ("all_gather", 16), ("barrier", 0):
        if floats == 64 and rank == 2:
            continue
        number = len(events) + 1
        nodes.append(node(number + 2, "gloo:" + kind, 2, floats, number))
        events.append({"ph": "X", "cat": "cpu_op", "name": "gloo:" + kind, "pid": 1, "tid": 7, "ts": 1000 + 100 * number,
                       "dur": 50, "args": {"External id": number, "Record function id": number}})
    json.dump({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "", "start_ts": 0, "nodes": nodes, "finish_ts": 9},
              open(f"job/rank{rank}_host.json", "w"))
    json.dump({"distributedInfo": {"backend": "gloo", "rank": rank, "world_size": 3, "pg_config": GROUPS[:2 if rank < 2 else 1]},
               "traceEvents": events}, open(f"job/rank{rank}.json", "w"))
EOF
cat >system.json <<'EOF'
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
 "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"], "collective-optimization": "localBWAware",
 "local-mem-bw": 1600}
EOF
printf 'topology: [ Switch ]\nnpus_count: [ 3 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n' >network.yml
for rank in 0 1 2; do
    orrery link job/rank${rank}_host.json job/rank$rank.json -o one.$rank.et
done
orrery run one -n unaware -s system.json -t network.yml
echo "exit $?"
orrery link --json job/rank0_host.json job/rank0.json -o one.0.et 2>/dev/null | grep -o '"groups_[a-z]*": [0-9]*'
orrery link --ranks job -o job.orr
orrery run job.orr -n unaware -s system.json -t network.yml | head -1
sed 's/"ts": [0-9]*/"ts": 4611686018427388/g' job/rank2.json >late.json
orrery link late.json -o late.et
echo "exit $?"
