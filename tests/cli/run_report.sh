# SPDX-License-Identifier: Apache-2.0
# run --report: a page with the data in it, twice the same; a stall is explained in it and keeps its status; what goes
# with --report is refused without.
cat >look.py <<'END'
import json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
run = json.loads(re.search(r'id="orrery-data">(.*?)</script>', page, re.S)[1])["runs"][0]
for path in sys.argv[2:]:
    value = run
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    print(path, json.dumps(value))
assert page.startswith("<!DOCTYPE html>") and page.count("<script") == 3 and "http://" not in page.replace("http://www.w3.org/", "")
END
orrery -q gen send_recv_ring --ranks 6 --comm-size 1000000 -o ring.orr
echo '{"scheduling-policy": "LIFO", "collective-optimization": "baseline"}' >sys.json
printf 'topology: [Ring, Switch]\nnpus_count: [3, 2]\nbandwidth: [50, 10]\nlatency: [500, 1000]\n' >net.yml
orrery run -q ring.orr -s sys.json -t net.yml -n aware --report ring.html >ring.txt
orrery run -q ring.orr -s sys.json -t net.yml -n aware --report again.html >ring.txt
sed 's/again\.html/ring.html/' again.html | cmp - ring.html
python3 look.py ring.html headline.time_ns headline.ranks timeline.spans timeline.left_out what_if.0 topology.dimensions.1 \
    inputs.2.path options.2 stall
# What would be with twice the bandwidth or half the latency is what a run with such a network gives.
sed 's/\[50, 10\]/[100, 10]/' net.yml >wide.yml
sed 's/\[500, 1000\]/[250, 1000]/' net.yml >close.yml
for net in wide close; do
    orrery run -q ring.orr -s sys.json -t $net.yml -n aware --json | sed -n 's/.*"simulated_ns": \([0-9]*\),/\1/p'
done
python3 look.py ring.html what_if.0.time_ns what_if.1.time_ns
orrery run -q ring.orr -s sys.json -t net.yml --what-if estimate --report e.html >ring.txt
python3 look.py e.html what_if
orrery run -q ring.orr -s sys.json -t net.yml --what-if off --report-ranks 0-2 --report o.html >ring.txt
python3 look.py o.html what_if timeline.ranks_left_out
# Rank 1 never sends.
orrery -q gen send_recv_ring --ranks 2 -o pair
orrery -q gen one_comp_node -o comp
cp pair.0.et lone.0.et
cp comp.0.et lone.1.et
printf 'topology: [Ring]\nnpus_count: [2]\nbandwidth: [50]\nlatency: [500]\n' >two.yml
orrery run -q lone -s sys.json -t two.yml --report stall.html >/dev/null 2>&1
echo "status $?"
python3 look.py stall.html stall.title headline.sentence critical_path
orrery run ring.orr -s sys.json -t net.yml --what-if off
orrery run ring.orr -s sys.json -t net.yml --report-ranks 1
orrery run ring.orr -s sys.json -t net.yml --timeline-detail phases
orrery run -q ring.orr -s sys.json -t net.yml --report bad.html --report-ranks 3-1 >/dev/null
echo "status $?"
[ ! -e bad.html ] && echo "nothing was written"
# Nothing is written over what was read, or over another output.
cp sys.json kept.json
orrery run -q ring.orr -s kept.json -t net.yml --report kept.json
orrery run -q ring.orr -s kept.json -t net.yml --csv ring.orr
orrery run -q ring.orr -s kept.json -t net.yml --report out.html --timeline out.html
echo "status $?"
cmp kept.json sys.json && [ ! -e out.html ] && echo "nothing was written"
