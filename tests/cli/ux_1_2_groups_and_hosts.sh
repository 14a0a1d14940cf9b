# SPDX-License-Identifier: Apache-2.0
# Groups that are no whole dimension: 32 members, 4 on each of 8 hosts, use the 4 NICs of their host; and the bytes of
# tensor-parallel neighbours on two hosts are booked on the network between hosts.  Once such an all-reduce ran over NVLink.
orrery stage -q llama-3-8b --tp 2 --dp 32 --seq 4096 --batch 32 -o step.orr >/dev/null
orrery -q run step.orr --machine dgx-h100 --json >run.json
python3 - <<'PY'
import json
run = json.load(open("run.json"))
rows = [r for r in run["collectives"] if r["type"] == "ALL_REDUCE" and r["group_ranks"] == 32 and r["size_bytes"] > 2**25]
for r in rows[:1]:
    bus = 2 * 31 / 32 * r["size_bytes"] * r["count"] / r["duration_ns_total"]
    print("all-reduce of 32 on 8 hosts: 4 NICs" if 130 <= bus <= 200 else f"bus bandwidth {bus:.0f} GB/s")
# Bytes between hosts: 2 x 7/8 of the gradients of each group of 4 ranks of a host, 4 streams of a quarter each.
out = run["dimensions"][1]["bytes"]
least = sum(r["size_bytes"] * r["count"] / r["ranks"] * r["groups"] * 2 * 7 for r in rows)
print("booked between hosts" if 0.9 * least <= out <= 1.5 * least else f"{out} of {least} bytes between hosts")
PY
# Both parallelisations of the question "tp 8, pp 4 or tp 4, pp 8?" get an answer that could be true.
for tp in 8 4; do
    orrery stage -q llama-3-70b --tp $tp --pp $((32 / tp)) --dp 32 --batch 1024 -o b.orr >/dev/null
    orrery -q run b.orr --machine dgx-h100 --json | python3 -c '
import json, sys
mfu = json.load(sys.stdin)["throughput"]["mfu"]
print("MFU as published runs have it" if 0.33 < mfu < 0.5 else f"MFU {mfu}")'
done
