# SPDX-License-Identifier: Apache-2.0
# Which rows of a list count: the most of each number, or what 'rows' says.  Checked against the JSON of run. room: nsight
cat >r.yaml <<'E'
command: stage, run
options: {model: llama-3-8b, layers: 3, seq: 512, batch: 8, tp: 2, pp: 3, dp: 1, machine: dgx-h100}
axes: {micro-batch: [1, 2]}
rows:
  busiest: {of: per_rank, take: largest compute_ns}
  last_stage: {of: stage.memory, take: -1}
  mean: {of: per_rank, take: mean}
  gathers: {of: collectives, where: type == 'ALL_GATHER' and group_ranks == 2, take: sum}
  late: {of: per_rank, where: rank >= 4, take: min}
  none: {of: nowhere}
  no_row: {of: per_rank, take: 6}
E
orrery -q sweep r.yaml
orrery sweep export json r.db >table.json
# The same points without 'rows': what is kept of lists by itself does not change.
sed '/^rows/,$d' r.yaml >plain.yaml
orrery -q sweep plain.yaml
orrery sweep export json plain.db >plain.json
orrery stage llama-3-8b --layers 3 --seq 512 --batch 8 --tp 2 --pp 3 --dp 1 --machine dgx-h100 --micro-batch 2 -o s.orr --json >stage.json
orrery run s.orr --machine dgx-h100 --json >run.json
python3 - <<'E'
import json
run, stage = json.load(open("run.json")), json.load(open("stage.json"))
ranks = run["per_rank"]
def rows(path):
    t = json.load(open(path))
    return [dict(zip((c["name"] if isinstance(c, dict) else c for c in t["columns"]),
                     r["values"] if isinstance(r, dict) else r)) for r in t["rows"]]
row, plain = rows("table.json")[1], rows("plain.json")[1]
busiest = max(ranks, key=lambda r: r["compute_ns"])
gathers = [c for c in run["collectives"] if c["type"] == "ALL_GATHER" and c["group_ranks"] == 2]
def same(name, value):
    print(name, "as in run" if row.get(name) == value else f"WRONG: {row.get(name)}, not {value}")
same("busiest.rank", busiest["rank"])
same("busiest.idle_ns", busiest["idle_ns"])
same("busiest.row_count", 6)
same("last_stage.stage", 2)
same("last_stage.peak_bytes", stage["memory"][-1]["peak_bytes"])
mean = sum(r["compute_ns"] for r in ranks) / 6
print("mean.compute_ns", "as in run" if abs(row["mean.compute_ns"] - mean) < 1e-6 * mean else row["mean.compute_ns"])
same("gathers.row_count", len(gathers))
same("gathers.bytes_total", sum(c["bytes_total"] for c in gathers))
same("late.rank", 4)
same("late.finished_at_ns", min(r["finished_at_ns"] for r in ranks[4:]))
same("none.row_count", 0)
same("no_row.row_count", 6)
print("no_row.rank", row.get("no_row.rank"))
for key in ranks[0]:
    most = max((r[key] for r in ranks if r[key] is not None), default=None)
    name = "per_rank.max." + key
    if most is not None and not row[name] == plain[name] == most:
        print("WRONG", name, row[name], plain[name], most)
same("interval_ns.min", run["interval_ns"][0])
same("interval_ns.max", run["interval_ns"][1])
different = [n for n in plain if plain[n] != row.get(n)]
print("without rows:", different or "the same figures")
E
{
    for rows in 'x: {of: per_rank, take: most}' 'x: {take: max}' 'x: {of: per_rank, where: "rank >"}' 'x: [1]' \
        'x: {of: per_rank, take: largest}' 'x: {of: per_rank, tkae: sum}' 'x: {of: a}, x: {of: b}' 'x: {of: [a]}'; do
        printf 'command: gen, run\nrows: {%s}\n' "$rows" >bad.yaml
        orrery sweep bad.yaml
        echo "exit $?"
    done
} 2>&1
