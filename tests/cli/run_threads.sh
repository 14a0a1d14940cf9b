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
