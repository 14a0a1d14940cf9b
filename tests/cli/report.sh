# SPDX-License-Identifier: Apache-2.0
# orrery report: of timelines, logs, folders and traces; what cannot be is refused, and then nothing is written.
orrery -q gen three_layer_data_parallel --ranks 4 -o step.orr
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 2,
 "all-reduce-implementation": ["ring"]}' >sys.json
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
cat >look.py <<'END'
import json, sys
document = json.load(sys.stdin)
for run in document["runs"]:
    print(run["name"], run["kind"], run["headline"]["time_ns"], run["headline"]["ranks"], len(run["breakdown"]),
          run["timeline"]["spans"])
for row in document.get("comparison", {"rows": []})["rows"][:3]:
    print(row)
END
orrery run -q step.orr -s sys.json -t net.yml --timeline a.json.zst --trace-log a.csv >/dev/null
orrery report a.json.zst a.csv --ranks all --json | python3 look.py
orrery report step.orr -s sys.json -t net.yml --what-if off --json -o data.json
python3 look.py <data.json
mkdir ranks empty
for r in 0 1 2; do
    printf '{"distributedInfo": {"rank": %s}, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", ' $r
    printf '"pid": 0, "tid": 7, "ts": %s, "dur": 5}]}' $r
done | python3 -c "
import re, sys
for k, text in enumerate(re.findall(r'\{\"dist.*?\]\}', sys.stdin.read())):
    open(f'ranks/{k}.json', 'w').write(text)"
orrery report ranks --json | python3 look.py
orrery report a.json.zst --title 'A <b>' -o page.html
grep -c '<title>A &lt;b></title>' page.html
orrery view timeline a.json.zst --ranks 2 --ascii --text --width 60 | head -4
tell() {
    "$@" >/dev/null 2>err.txt
    echo "status $?: $(head -1 err.txt)"
}
tell orrery report a.json.zst -s sys.json -o no.html
tell orrery report a.json.zst --frequency 1GHz -o no.html
tell orrery report step.orr -o no.html
tell orrery report step.orr -s sys.json -o no.html
tell orrery report missing.json -o no.html
tell orrery report missing.json -s sys.json -t net.yml -o no.html
tell orrery report empty -s sys.json -t net.yml -o no.html
printf '{"traceEvents": [\n{"ph": "X", "ts": 1, "dur": -2}]}' >bad.json
tell orrery report a.json.zst bad.json -o no.html
tell orrery report a.json.zst --ranks x -o no.html
tell orrery report a.json.zst -o nowhere/no.html
tell orrery view timeline a.json.zst --frequency 2GHz
[ ! -e no.html ] && echo "nothing was written"
