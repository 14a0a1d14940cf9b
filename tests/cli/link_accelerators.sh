# SPDX-License-Identifier: Apache-2.0
# MTIA, HPU, XPU and other devices in profiler traces: taken as devices, or counted and named.
cat > make.py <<'END'
import json
events = []
def add(cat, name, tid, ts, dur, **args):
    events.append({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args})
add("cpu_op", "aten::mm", 7, 0, 50, **{"Record function id": 1})
add("mtia_runtime", "runFunction", 7, 10, 5, correlation=1)
add("mtia_ccp_events", "mm_kernel", 3, 20, 100, correlation=1)
add("mtia_ccp_events", "add_kernel", 4, 30, 40, correlation=1)
add("hpu_op", "gemm", 5, 200, 30)
add("privateuse1_kernel", "matmul", 6, 250, 10, stream=2)
add("xpu_runtime", "zeCommandListAppendLaunchKernel", 7, 40, 2, correlation=9)
add("kernel", "xpu gemm", 8, 300, 20, correlation=9, stream=8, device=0)
add("tpu_op", "fusion.1", 9, 400, 10)
add("tpu_op", "fusion.2", 9, 420, 10)
add("quantum", "shot", 9, 440, 10)
add("python_function", "train.py(1): step", 7, 0, 500)
json.dump({"schemaVersion": 1, "traceEvents": events}, open("device.json", "w"))
END
python3 make.py || exit 1
orrery link device.json -o x.et
orrery info x.et | sed -n '/Host and device/,/^$/p'
orrery report -q device.json --json | python3 -c '
import json, sys
print(json.load(sys.stdin)["runs"][0]["breakdown"][0]["compute_ns"])'
echo "== a measured trace with a roofline"
cat > system.json <<'END'
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
 "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
 "all-to-all-implementation": ["ring"], "collective-optimization": "baseline", "local-mem-bw": 1000, "boost-mode": 0,
 "roofline-enabled": 1, "peak-perf": 900}
END
printf 'topology: [Switch]\nnpus_count: [1]\nbandwidth: [50]\nlatency: [500]\n' > network.yml
orrery run -q x.et --system system.json --topology network.yml
echo "status $?"
echo "== a printed graph whose groups nobody knows"
cat > graph.json <<'END'
[{"pass": "forward", "nodes": [
 {"name": "x", "op": "placeholder", "target": "x", "inputs": [], "args": "()", "val": {"shape": [64, 64], "dtype": "torch.float32"}},
 {"name": "y", "op": "call_function", "target": "_c10d_functional.all_reduce.default", "inputs": ["x"], "args": "(x, 'sum', '5')", "val": {"shape": [64, 64], "dtype": "torch.float32"}},
 {"name": "z", "op": "call_function", "target": "_c10d_functional.wait_tensor.default", "inputs": ["y"], "args": "(y,)", "val": {"shape": [64, 64], "dtype": "torch.float32"}},
 {"name": "output", "op": "output", "target": "output", "inputs": ["z"], "args": "((z,),)"}]}]
END
orrery convert fx --world-size 8 graph.json -o graph.orr
