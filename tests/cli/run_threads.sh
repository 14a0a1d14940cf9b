# SPDX-License-Identifier: Apache-2.0
# Ranks on several threads: the same bytes on all networks that can be divided, and it says how many threads worked.
orrery stage -q llama-3-8b --tp 2 --pp 2 --dp 4 --batch 16 --layers 4 -o step.orr >/dev/null
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 2, "peak-perf": 900,
 "active-chunks-per-dimension": 2, "roofline-enabled": 1, "endpoint-delay": 10, "collective-optimization": "localBWAware",
 "all-reduce-implementation": ["ring", "ring"], "all-gather-implementation": ["ring", "ring"],
 "reduce-scatter-implementation": ["ring", "ring"], "all-to-all-implementation": ["direct", "direct"]}' >sys.json
printf 'topology: [Switch, Ring]\nnpus_count: [2, 8]\nbandwidth: [450, 50]\nlatency: [500, 5000]\n' >net.yml
printf 'ranks:\n  - {ranks: 3, compute: 0.9}\n  - {ranks: 8, delay: 20us}\n' >slow.yml
for network in unaware aware graph; do
    for n in 1 2 4; do
        orrery run step.orr -s sys.json -t net.yml --network $network --ranks-file slow.yml --fold off --threads $n \
            --timeline $n.json --timeline-detail phases --critical-path=20 --csv $n.csv >$n.txt 2>$n.err
        cmp 1.json $n.json && cmp 1.csv $n.csv && cmp 1.txt $n.txt
        grep '^threads' $n.err
    done
done
for how in "--network unaware" "--network fluid --fold off" "--network aware --fold off --rendezvous"; do
    orrery run step.orr -s sys.json -t net.yml $how --threads 3 2>&1 >/dev/null | grep '^threads'
done
orrery run step.orr -s sys.json -t net.yml --network aware --fold off --threads 3 2>&1 >/dev/null | grep '^threads'
# Schedules: groups that never meet, one whose ranks meet too often, one that folds, a limit.
orrery gen goal -q random_bisect -n 64 -d 1000 -o pairs.goal >/dev/null
orrery gen goal -q linear_alltoallv -n 256 -d 1000 --a2av-skew-ratio 3 -o skew.goal >/dev/null
orrery gen goal -q dissemination -n 64 -d 1000 -o same.goal >/dev/null
for schedule in pairs skew same; do
    for n in 1 3; do
        orrery run $schedule.goal --threads $n --csv $n.csv 2>&1 >/dev/null | grep '^threads'
    done
    cmp 1.csv 3.csv
done
