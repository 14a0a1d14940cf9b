# SPDX-License-Identifier: Apache-2.0
# The accounting of time (docs/accounting.md) on every network, folded or not: seven figures of a rank that add up to the run,
# waits and bubbles apart from exposed communication.
orrery -q stage gpt2 --tp 2 --pp 2 --dp 4 --batch 16 -o pipeline.orr > /dev/null
cat > late.yml <<'YML'
ranks:
  - {ranks: 5, delay: 3ms}
YML
cat > ring.yml <<'YML'
topology: [ Ring ]
npus_count: [ 16 ]
bandwidth: [ 50.0 ]
latency: [ 700.0 ]
YML
cat > ring.json <<'JSON'
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 2, "preferred-dataset-splits": 4,
 "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
 "all-to-all-implementation": ["ring"], "roofline-enabled": 1, "peak-perf": 900, "local-mem-bw": 1600}
JSON
cat > sums.py <<'PY'
import json, sys
runs = [json.load(open(name)) for name in ("folded.json", "every.json")]
parts = ("compute_ns", "exposed_communication_ns", "remote_memory_ns", "host_ns", "waiting_ns", "bubble_ns", "idle_ns")
bad = sum(sum(rank[key] for key in parts) != run["simulated_ns"] for run in runs for rank in run["per_rank"])
same = all(runs[0][key] == runs[1][key] for key in ("per_rank", "point_to_point", "over_ranks"))
waits, bubbles = (sum(rank[key] for rank in runs[0]["per_rank"]) for key in ("waiting_ns", "bubble_ns"))
print(f"{sys.argv[1]}: {len(runs[0]['per_rank'])} ranks, {bad} whose figures do not add up,",
      "waits," if waits else "no waits,", "bubbles," if bubbles else "no bubbles,", "folded or not" if same else "other figures when folded")
PY
look() {
    name=$1
    shift
    orrery -q run "$@" --json > folded.json
    orrery -q run "$@" --fold off --json > every.json
    python3 sums.py "$name"
}
for network in unaware aware fluid; do
    look "$network" pipeline.orr --machine dgx-h100:2 -n $network
    look "$network, one late" pipeline.orr --machine dgx-h100:2 -n $network --ranks-file late.yml
done
look "unaware, a ring" pipeline.orr -s ring.json -t ring.yml -n unaware
