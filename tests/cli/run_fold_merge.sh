# SPDX-License-Identifier: Apache-2.0
# A rank that begins late sets others apart; once they have waited for it, fewer are simulated again.  Nothing else changes.
orrery stage -q llama-3-8b --tp 2 --pp 2 --dp 4 --batch 16 --layers 4 -o step.orr >/dev/null
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 2, "peak-perf": 900,
 "active-chunks-per-dimension": 2, "roofline-enabled": 1, "endpoint-delay": 10, "collective-optimization": "localBWAware",
 "all-reduce-implementation": ["ring", "ring"], "all-gather-implementation": ["ring", "ring"],
 "reduce-scatter-implementation": ["ring", "ring"], "all-to-all-implementation": ["direct", "direct"]}' >sys.json
printf 'topology: [Switch, Switch]\nnpus_count: [2, 8]\nbandwidth: [450, 50]\nlatency: [500, 5000]\n' >net.yml
printf 'ranks:\n  - {ranks: 3, delay: 200us}\n' >late.yml
for how in auto off; do
    orrery run -q step.orr -s sys.json -t net.yml --network unaware --ranks-file late.yml --fold $how --timeline $how.json \
        --timeline-detail phases --critical-path=20 --csv $how.csv >$how.txt
done
cmp auto.json off.json && cmp auto.csv off.csv
diff <(sed '/^network/d' auto.txt) <(sed '/^network/d' off.txt)
grep -o ';[^;]*ranks simulated.*' auto.txt
orrery run -q step.orr -s sys.json -t net.yml --network unaware --ranks-file late.yml --json | grep ranks_simulated
orrery run -q step.orr -s sys.json -t net.yml --network unaware --ranks-file late.yml --fold-why 2>&1 >/dev/null | tail -1
orrery run -q step.orr -s sys.json -t net.yml --network unaware --ranks-file late.yml --fold verify --fold-why 2>&1 >/dev/null | tail -1

# A rank that is slow for good is never like the others.
printf 'ranks:\n  - {ranks: 3, compute: 0.9}\n' >slow.yml
orrery run -q step.orr -s sys.json -t net.yml --network unaware --ranks-file slow.yml --json | grep ranks_simulated

# Stopped on the way.
orrery run -q step.orr -s sys.json -t net.yml --network unaware --ranks-file late.yml --max-events 400 >/dev/null 2>&1
echo "exit status $?"
orrery run -q step.orr -s sys.json -t net.yml --network unaware --ranks-file late.yml --max-events 400 \
    --timeline stopped.json >/dev/null 2>&1
grep -c '"process_name"' stopped.json
