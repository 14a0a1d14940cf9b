# SPDX-License-Identifier: Apache-2.0
# A run that comes through a pipe is recognised like a file; an export of Nsight Systems is a measured run.
printf '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 5}]}' >a.json
printf 'issue,r=0,t=0,n=1,x=COMP_NODE_a\ncallback,r=0,t=9000,n=1,x=COMP_NODE_a\n' >a.csv
$ORR_BUILD/tests/unit/make_nsys traces nodes=1 rounds=4
cat >look.py <<'EOF'
import json, sys
run = json.load(sys.stdin)["runs"][0]
print(run["name"], run["kind"], run["headline"]["ranks"], run["headline"]["time_ns"])
EOF
orrery report - --json <a.json | python3 look.py
cat a.json | orrery report - --json | python3 look.py
gzip -c a.json | orrery report - --json | python3 look.py
cat a.csv | orrery report - --json | python3 look.py
orrery report traces/trace_nid000000.sqlite --json | python3 look.py | cut -d" " -f1-3
cat >types.py <<'EOF'
import json, sys
print(*sorted((c["type"], c["count"]) for c in json.load(sys.stdin)["runs"][0]["collectives"]))
EOF
# Kernels as NCCL calls them now, and as it did before 2.19.
orrery report traces/trace_nid000000.sqlite --json | python3 types.py
python3 -c "
import sqlite3
d = sqlite3.connect('traces/trace_nid000000.sqlite')
d.execute('UPDATE StringIds SET value = replace(value, \'ncclDevKernel_\', \'ncclKernel_\')')
d.commit()"
orrery report traces/trace_nid000000.sqlite --json | python3 types.py
printf '{"traceEvents": []}' | orrery report - --json | grep -o 'Nothing happened'
gzip -c a.json | orrery view timeline - --text --ascii --width 60
cat a.csv | orrery view timeline - --text --ascii --width 60
cat a.json | head -c 60 | orrery report - -o no.html
echo "status $?"
[ ! -e no.html ] && echo "nothing was written"
