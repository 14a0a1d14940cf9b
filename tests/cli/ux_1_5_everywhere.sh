# SPDX-License-Identifier: Apache-2.0
# One run, one answer: terminal, JSON, CSV, report, a report of the saved JSON, diff and what-if say the same of where the time
# goes, to the digits that they show.
orrery stage -q gpt2 --pp 2 --tp 2 --dp 2 --batch 8 -o step.orr >/dev/null
orrery -q run step.orr --machine dgx-h100 --csv ranks.csv --timeline line.json --report page.html --what-if simulate >run.txt
orrery -q run step.orr --machine dgx-h100 --json >run.json
orrery -q report run.json --json >saved.json
orrery -q report line.json --json >line_report.json
orrery -q diff line.json line.json --json >diff.json
python3 - <<'PY'
import csv, json, re
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
run = json.load(open("run.json"))
mean = {k: (v or {"mean": 0})["mean"] for k, v in run["over_ranks"].items() if k.endswith("_ns")}
names = {"compute": "compute_ns", "exposed": "exposed_communication_ns", "waits for peers": "waiting_ns",
         "pipeline bubble": "bubble_ns", "idle": "idle_ns", "communication": "communication_ns"}
wrong = []

def same(what, a, b, digits=None):
    """To `digits` significant ones, or to two nanoseconds."""
    limit = 2 if digits is None else 0.6 * 10 ** (1 - digits) * max(abs(a), 1)
    if abs(a - b) > limit:
        wrong.append(f"{what}: {a} and {b}")

# Terminal: three digits, and the share.
text = open("run.txt").read()
for name, key in names.items():
    row = re.search(rf"^ *{name} +(.*)$", text, re.M)
    cells = re.findall(r"([\d.,]+) ?(ns|us|ms|s)\b|\b(0)\b", row.group(1)) if row else []
    if not cells:
        same(f"terminal, {name} is not shown", mean[key], 0)
        continue
    number, unit, zero = cells[1]
    same(f"terminal, {name}", mean[key], 0 if zero else float(number.replace(",", "")) * UNITS[unit], 3)
    share = re.search(r"([\d.]+)%", row.group(1))
    if share and "<" not in row.group(1):
        same(f"terminal, share of {name}", 100 * mean[key] / run["simulated_ns"], float(share.group(1)), 2)
# CSV.
rows = list(csv.DictReader(line for line in open("ranks.csv") if not line.startswith("#")))
for key in ("compute_ns", "exposed_communication_ns", "waiting_ns", "bubble_ns", "host_ns", "remote_memory_ns", "idle_ns"):
    same(f"CSV, {key}", mean[key], sum(int(r[key]) for r in rows) / len(rows))
# Reports: of the run, of its saved JSON, of its timeline.
page = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', open("page.html").read(), re.S)
pages = {"report": json.loads(page.group(1)), "report of the timeline": json.load(open("line_report.json"))}
theirs = {"compute_ns": "compute_ns", "exposed_communication_ns": "comm_exposed_ns", "waiting_ns": "waiting_ns",
          "bubble_ns": "bubble_ns", "host_ns": "host_ns", "remote_memory_ns": "memory_ns", "idle_ns": "idle_ns"}
for what, document in pages.items():
    parts = document["runs"][0]["breakdown"]
    count = sum(p["count"] for p in parts)
    for key, other in theirs.items():
        same(f"{what}, {key}", mean[key], sum(p[other] * p["count"] for p in parts) / count)
saved = json.load(open("saved.json"))["runs"][0]
report = pages["report"]["runs"][0]
for head in (saved["headline"], report["headline"]):
    same("headline, time", run["simulated_ns"], head["time_ns"])
    same("headline, exposed", mean["exposed_communication_ns"], head["exposed_comm_ns"])
    for key in ("tokens_per_s", "tflops_per_device", "mfu"):
        same(f"headline, {key}", run["throughput"][key], head[key], 6)
# Diff: both sides are this run.
for part, values in json.load(open("diff.json"))["parts_of_a_rank_ps"].items():
    key = {"exposed_communication": "exposed_communication_ns", "remote_memory": "remote_memory_ns"}.get(part, part + "_ns")
    for v in values:
        same(f"diff, {part}", mean[key], v / 1000)
# What-if: gains are of this run's time.
for w in report["what_if"]:
    same(f"what if, {w['change']}", run["simulated_ns"] * (1 - w["gain_share"]), w["time_ns"], 6)
print("\n".join(wrong) if wrong else "the same everywhere")
print(len(report["what_if"]) > 6 and "what-if tried hardware and the job")
PY
