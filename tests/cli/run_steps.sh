# SPDX-License-Identifier: Apache-2.0
# The same step many times in a row: when it repeats itself, it is not simulated again, and what comes out is what all
# steps simulated give: times, tables, timelines.
printf 'topology: [Switch, Switch]\nnpus_count: [4, 8]\nbandwidth: [400, 50]\nlatency: [500, 1000]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "collective-optimization": "baseline", "local-mem-bw": 3000, "roofline-enabled": 1,
  "peak-perf": 600, "preferred-dataset-splits": 2, "active-chunks-per-dimension": 1, "endpoint-delay": 10}' >sys.json
orrery stage -q llama-3-8b --tp 4 --pp 2 --dp 4 --batch 8 --seq 512 -o step.orr >/dev/null
for network in fluid unaware; do
    orrery run -q step.orr -s sys.json -t net.yml -n $network --steps 50 | head -5
    orrery run -q step.orr -s sys.json -t net.yml -n $network --steps 50 --json >some.json
    orrery run -q step.orr -s sys.json -t net.yml -n $network --steps 50 --fold off --json >all.json
    for f in some all; do # counts of the simulation itself are of what was simulated
        sed -e 's/"simulated": *[0-9]*,/"simulated": N,/' -e 's/"\(events\|ranks_simulated\)": *[0-9]*/"\1": N/g' $f.json >$f.txt
    done
    cmp some.txt all.txt
    orrery run -q step.orr -s sys.json -t net.yml -n $network --steps 7 --fold verify --fold-why \
        --timeline t.json --timeline-detail phases --critical-path --csv t.csv 2>&1 >/dev/null
    orrery run -q step.orr -s sys.json -t net.yml -n $network --steps 7 --fold off \
        --timeline all.json --timeline-detail phases --csv all.csv >/dev/null
    cmp t.json all.json
    cmp t.csv all.csv
    orrery run -q step.orr -s sys.json -t net.yml -n $network --steps 7 --report r.html >/dev/null
    grep -o 'The page shows step[^"]*' r.html
done
# Other networks simulate them all.
orrery run -q step.orr -s sys.json -t net.yml -n aware --steps 3 | head -3
# One step in a row is one step.
orrery run -q step.orr -s sys.json -t net.yml --steps 1 >one.txt
orrery run -q step.orr -s sys.json -t net.yml >none.txt
cmp one.txt none.txt
# What is kept of one step only.
orrery run -q step.orr -s sys.json -t net.yml --steps 3 --trace-log log.txt
orrery run -q step.orr -n loggops --steps 3
orrery run -q step.orr -s sys.json -t net.yml --steps 0
