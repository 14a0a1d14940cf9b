# SPDX-License-Identifier: Apache-2.0
# What a user named is no operator; DeepEP's and NVSHMEM's kernels and gloo's threads are communication.
cat > make.py <<'END'
import json
events = []
def add(cat, name, tid, ts, dur, **args):
    events.append({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args})
def launch(name, stream, ts, dur, number):
    add("cuda_runtime", "cudaLaunchKernel", 7, ts - 4, 2, correlation=number)
    add("kernel", name, stream, ts, dur, correlation=number, stream=stream, device=0)
add("user_annotation", "ProfilerStep#3", 7, 1000, 900, **{"Record function id": 1})
add("gpu_user_annotation", "ProfilerStep#3", 20, 1015, 800)
add("user_annotation", "my layer", 7, 1005, 400, **{"Record function id": 2})
add("cpu_op", "aten::mm", 7, 1010, 20, **{"Record function id": 3})
launch("gemm<float>(int)", 20, 1020, 100, 1)
add("cpu_op", "moe::dispatch", 7, 1050, 20, **{"Record function id": 4})
launch("void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int)", 20, 1120, 5, 2)
launch("void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, void*)", 24, 1140, 200, 3)
launch("nvshmemi_quiet_kernel(nvshmemi_state_t*)", 24, 1350, 50, 4)
add("cpu_op", "moe::combine", 7, 1500, 20, **{"Record function id": 5})
launch("void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(int4*)", 24, 1510, 100, 5)
launch("void cross_device_reduce_2stage<half, 8>(RankData*)", 20, 1620, 30, 6)
json.dump({"schemaVersion": 1, "traceEvents": events}, open("moe.json", "w"))
events.clear()
add("user_annotation", "ProfilerStep#1", 7, 0, 500, **{"Record function id": 1})
add("cpu_op", "aten::mm", 7, 10, 100, **{"Record function id": 2})
add("cpu_op", "c10d::allreduce_", 7, 110, 10, **{"Record function id": 3})
add("user_annotation", "gloo:all_reduce", 8, 120, 200, **{"Record function id": 4})
add("cpu_op", "aten::add", 7, 130, 150, **{"Record function id": 5})
json.dump({"schemaVersion": 1, "traceEvents": events}, open("gloo.json", "w"))
END
python3 make.py || exit 1
figures() {
    python3 -c '
import json, sys
run = json.load(sys.stdin)["runs"][0]
print(run["headline"]["sentence"])
print({key: value for key, value in run["breakdown"][0].items() if key.endswith("_ns")})
print(sorted((row["type"], row["count"], row["time_ns"]) for row in run["collectives"]))'
}
echo "== report: a device"
orrery report moe.json --json -q | figures
echo "== report: a host that computes, gloo beside it"
orrery report gloo.json --json -q | figures
echo "== link and info"
orrery link moe.json -o moe.et --timeline moe_timeline.json 2>&1 | grep -v "nodes of\|events of\|operators that"
orrery info moe.et --top 20 | sed -n '/Host and device/,/Compute/p'
orrery info moe.et --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
print(d["annotations"], d["one_sided_kernels"], sep="\n")'
orrery report moe_timeline.json --json -q | figures
echo "== simulated, and compared with what was measured"
cat > system.json <<'END'
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
 "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
 "all-to-all-implementation": ["ring"], "collective-optimization": "baseline", "local-mem-bw": 1000, "boost-mode": 0}
END
printf 'topology: [Switch]\nnpus_count: [1]\nbandwidth: [50]\nlatency: [500]\n' > network.yml
orrery run -q moe.et --system system.json --topology network.yml --timeline simulated.json > /dev/null
orrery diff moe.json simulated.json
orrery report moe.json simulated.json --json -q | python3 -c '
import json, sys
print([row["name"] for row in json.load(sys.stdin)["comparison"]["rows"]])'
