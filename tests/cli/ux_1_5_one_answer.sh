# SPDX-License-Identifier: Apache-2.0
# One run, one answer: terminal, JSON, CSV and report split the time of a rank alike, and the parts add up to the run
# (docs/accounting.md).  Once the terminal said "exposed 57 %" and the report of the same run "8.9 %".
orrery stage -q llama-3-8b --tp 8 --pp 4 --dp 1 --batch 4 -o step.orr >/dev/null
orrery -q machine export dgx-h100:4 -o files
cat >compare.py <<'E2'
import csv, json, re, sys
run = json.load(open("run.json"))
page = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', open("page.html").read(), re.S)
report = json.loads(page.group(1))["runs"][0]
rows = report["breakdown"]
ranks = sum(row["count"] for row in rows)
table = list(csv.DictReader(line for line in open("ranks.csv") if not line.startswith("#")))
keys = {"compute_ns": "compute_ns", "exposed_communication_ns": "comm_exposed_ns", "remote_memory_ns": "memory_ns",
        "host_ns": "host_ns", "waiting_ns": "waiting_ns", "bubble_ns": "bubble_ns", "idle_ns": "idle_ns"}
whole = 0
for ours, theirs in keys.items():
    here = run["over_ranks"][ours]["mean"]
    there = sum(row[theirs] * row["count"] for row in rows) / ranks
    third = sum(int(row[ours]) for row in table) / len(table)
    whole += here
    if max(abs(here - there), abs(here - third)) > 1:
        print(f"{ours}: JSON {here}, report {there}, CSV {third}")
if abs(whole - run["simulated_ns"]) > 1:
    print(f"the parts are {whole} of {run['simulated_ns']}")
# The last all-reduce, of 4 bytes: a rank waits long for the others, and the collective takes microseconds.
last = next(row for row in run["collectives"] if row["size_bytes"] == 4)
one = last["duration_ns_total"] / last["count"]
shown = next(row for row in report["collectives"] if row["size_bytes"] == 4)
print(sys.argv[1], "the same", "4 bytes in microseconds" if one < 100e3 else f"4 bytes take {one}",
      "as in the report" if abs(shown["time_ns"] / one - 1) < 0.01 or abs(shown["time_ns"] - one) < 1 else f"report {shown}")
E2
for network in fluid aware unaware; do
    orrery run -q step.orr --machine dgx-h100 -n $network --json --csv ranks.csv --report page.html --what-if off >run.json
    python3 compare.py $network
done
orrery run -q step.orr --machine dgx-h100 | grep -c '^waits for peers\|^pipeline bubble'
