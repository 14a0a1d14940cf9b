# SPDX-License-Identifier: Apache-2.0
# Timeline, CSV, report and critical path of a folded run are those of every rank simulated, to the byte.
orrery stage -q llama-3-8b --tp 2 --pp 2 --dp 4 --batch 16 --layers 4 -o step.orr >/dev/null
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 2, "peak-perf": 900,
 "active-chunks-per-dimension": 2, "roofline-enabled": 1, "endpoint-delay": 10, "collective-optimization": "localBWAware",
 "all-reduce-implementation": ["ring", "ring"], "all-gather-implementation": ["ring", "ring"],
 "reduce-scatter-implementation": ["ring", "ring"], "all-to-all-implementation": ["direct", "direct"]}' >sys.json
printf 'topology: [Switch, Switch]\nnpus_count: [2, 8]\nbandwidth: [450, 50]\nlatency: [500, 5000]\n' >net.yml
for how in auto off; do
    orrery run -q step.orr -s sys.json -t net.yml --network unaware --fold $how --timeline $how.json \
        --timeline-detail phases --critical-path=20 --csv $how.csv >$how.txt
    orrery run -q step.orr -s sys.json -t net.yml --network unaware --fold $how --report $how.html --what-if off >/dev/null
    sed 's/"made_from":"[^"]*"//; s/"events":[0-9]*//; s/"ranks_simulated":[0-9]*,//' $how.html >$how.page
done
cmp auto.json off.json && cmp auto.csv off.csv && cmp auto.page off.page
diff <(sed '/^network/d' auto.txt) <(sed '/^network/d' off.txt)
grep '^network' auto.txt
orrery run -q step.orr -s sys.json -t net.yml --network unaware --fold verify --fold-why --timeline v.json \
    --timeline-detail phases 2>&1 >/dev/null | tail -1
grep -o '"ranks_simulated":[0-9]*' auto.html
