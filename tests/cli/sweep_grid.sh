# SPDX-License-Identifier: Apache-2.0
# A grid from the specification to the table; again; in shards; with a cache; equal to the commands by hand. room: nsight
cat >grid.yaml <<'X'
title: two machines
command: stage, run
options: {model: llama-3-8b, layers: 2, batch: 16, seq: 1024, dp: "{8 // tp}"}
axes:
  tp: {from: 1, to: 8, factor: 2}
  machine: [dgx-a100:1, dgx-h100:1]
constraints: [tp >= 2, not (tp == 2 and machine == 'dgx-a100:1')]
measures: {ms: throughput.step_ns / 1e6, total_gib: stage.memory.max.peak_bytes * stage.ranks / 2 ** 30}
goal: min ms
X
orrery sweep grid.yaml --dry-run
orrery -q sweep grid.yaml -j 2
orrery sweep show grid.db | head -1
orrery sweep show grid.db --columns tp,machine
orrery sweep export csv grid.db --columns ms | sed 1d | sort -t, -k2g | head -1 | cut -d, -f1 >fastest
orrery sweep best grid.db --top 1 --columns tp | tail -1 | tr -d ' ' | cut -c1 | cmp - fastest
orrery -q sweep grid.yaml -j 1 # nothing is left to do
orrery sweep status grid.db

# The same as the commands by hand.
orrery -q stage llama-3-8b --tp 4 --dp 2 --machine dgx-h100:1 --layers 2 --batch 16 --seq 1024 -o s.orr >/dev/null
orrery -q run s.orr --machine dgx-h100:1 --json | grep -o '"step_ns": *[0-9]*' | tr -dc '0-9\n' >by_hand
orrery sweep show grid.db --where "tp == 4 and machine == 'dgx-h100:1'" --columns throughput.step_ns |
    tail -1 | awk '{print $2}' | cmp - by_hand

# Any number of workers, shards and merge: the same table.
orrery sweep export csv grid.db -o one.csv
orrery -q sweep grid.yaml -j 5 -o five.db
orrery sweep export csv five.db | cmp - one.csv
for i in 1 2 3; do orrery -q sweep grid.yaml --shard $i/3 >/dev/null; done
orrery sweep merge all.db grid.1-of-3.db grid.2-of-3.db grid.3-of-3.db
orrery sweep export csv all.db | cmp - one.csv
orrery sweep export json all.db -o a.json && orrery sweep export json grid.db | cmp - a.json

orrery sweep plot grid.db --x tp --y ms --group machine --log x --lines -o grid.svg
grep -c '<title>point' grid.svg

# Results of another sweep: four of five points are known.
sed 's/tp >= 2/tp >= 1/; /goal/d' grid.yaml >wider.yaml
orrery -q sweep grid.yaml -o first.db --cache cache.db
orrery -q sweep wider.yaml --cache cache.db
ls | grep -e -wal -e -shm -e -lock -e -join
true
