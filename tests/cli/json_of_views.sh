# SPDX-License-Identifier: Apache-2.0
# room: drawing
# --json of the commands that show: one object on standard output and nothing else.
orrery gen -q layered --nodes 8 --width 2 -o small.et
orrery feed --json small.et
orrery feed --json --waves small.et
orrery feed --json --names small.et | cut -c 1-120
cp "$ORR_ROOT/tests/broken/et/cycle_of_two.et" .
orrery feed --json cycle_of_two.et
echo "exit $?"
orrery feed --json --order v2 cycle_of_two.et
orrery view svg small.et --json -o small.svg
orrery view timeline --json -o run.json <(printf 'issue,r=0,t=0,n=1,x=a\ncallback,r=0,t=9,n=1,x=a\n') | sed 's|/dev/fd/[0-9]*|PIPE|'
orrery view svg small.et --json
echo "exit $?"
orrery demo -q --ranks 8 --json >demo.json && python3 -c '
import json
run = json.load(open("demo.json"))
print(run["format"], run["ranks"] if isinstance(run["ranks"], int) else len(run["ranks"]), sorted(run)[:5])'
ls orrery-demo
