# SPDX-License-Identifier: Apache-2.0
# RCCL-like tables, tables of one's own, and all-to-all by rails (PXN), beside bounds worked out by hand: the bytes of the busiest port at its
# rate.  Nothing is faster; large sizes take less than twice as long.
#
# MI300X: 7 links of 64 GB/s between 8 devices, 448 GB/s per port; 2 nodes: a NIC of 50 GB/s each.
# DGX H100: 450 GB/s and 50 GB/s.  Of S bytes per rank (all-gather and reduce-scatter: of all ranks) on n ranks, m per node:
#   all-reduce, one node        2 (n - 1) / n S / port
#   all-gather, reduce-scatter  (n - 1) / n S / port
#   all-to-all, one node        (n - 1) / n S / port; several: (n - m) / n S / NIC, and by NVLink
#                               ((m - 1) + (n - m) (m - 1) / m) / n S / port
cat > table.yml <<'YML'
name: like rccl
generation: other
Simple:
  rate: 0.5
out_rate: 0.8
choice:
  - {op: all_reduce, algorithm: ring, protocol: Simple}
YML
orrery machine show mi300x --file | sed 's/^collectives:.*/collectives: table.yml/' > own.yml
cat > look.py <<'PY'
import json, subprocess, sys
machine, op, port, nic, share_up, share_out = sys.argv[1], sys.argv[2], *(float(x) for x in sys.argv[3:7])
rows = json.loads(subprocess.run(["orrery", "nccl-tests", "-m", machine, "--op", op, "-b", "1K", "-e", "8G", "-f", "8", "--json"],
                                 check=True, capture_output=True, text=True).stdout)["rows"]
bound = [max(share_up * r["size"] / port, share_out * r["size"] / nic if nic else 0) / 1e3 for r in rows]
early = [r["size"] for r, b in zip(rows, bound) if r["time_us"] < b * (1 - 1e-4)]
last = rows[-1]["time_us"] / bound[-1]
loads = abs(rows[-1]["scale_up_bytes"] / rows[-1]["size"] - share_up) < 1e-6, abs(rows[-1]["nic_bytes"] / rows[-1]["size"] - share_out) < 1e-6
print(f"{machine} {op}:", f"faster than the port at {early}" if early else "never faster than the port,",
      "within twice the bound at 8 GiB," if last < 2 else f"{last:.2f} x the bound at 8 GiB,",
      "loads as by hand" if all(loads) else f"loads {rows[-1]['scale_up_bytes'] / rows[-1]['size']} {rows[-1]['nic_bytes'] / rows[-1]['size']}")
PY
#                              port NIC  shares of the size on port and NIC
python3 look.py mi300x all_reduce     448 0  1.75 0
python3 look.py mi300x all_gather     448 0  0.875 0
python3 look.py mi300x reduce_scatter 448 0  0.875 0
python3 look.py mi300x alltoall       448 0  0.875 0
python3 look.py mi300x:2 alltoall     448 50 0.875 0.5
python3 look.py own.yml all_reduce    448 0  1.75 0
python3 look.py dgx-h100:2 alltoall   450 50 0.875 0.5
python3 look.py dgx-h100:8 alltoall   450 50 0.875 0.875
# The table's own rate, by hand: half of the port, so at least twice the bound, and not faster with more channels.
orrery nccl-tests -m own.yml -b 8G -e 8G --json | python3 -c '
import json, sys
row = json.load(sys.stdin)["rows"][0]
by_hand = 1.75 * row["size"] / (448 * 0.5) / 1e3
print("half of the port:", "as the table says" if by_hand <= row["time_us"] < 1.1 * by_hand else (row["time_us"], by_hand), row["algorithm"], row["protocol"])'
