# SPDX-License-Identifier: Apache-2.0
# On aware and under LogGOPS ranks that can change places are simulated once: the same figures, links, timeline, to the byte.
orrery stage -q llama-3-8b --tp 2 --pp 2 --dp 4 --batch 16 --layers 4 -o step.orr >/dev/null
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 2, "peak-perf": 900,
 "active-chunks-per-dimension": 2, "roofline-enabled": 1, "endpoint-delay": 10, "collective-optimization": "localBWAware",
 "all-reduce-implementation": ["ring", "ring"], "all-gather-implementation": ["ring", "ring"],
 "reduce-scatter-implementation": ["ring", "ring"], "all-to-all-implementation": ["direct", "direct"]}' >sys.json
printf 'topology: [Switch, FullyConnected]\nnpus_count: [2, 8]\nbandwidth: [450, 50]\nlatency: [500, 5000]\n' >net.yml
for how in auto off; do
    orrery run -q step.orr -s sys.json -t net.yml --network aware --fold $how --timeline $how.json \
        --timeline-detail phases --critical-path=20 --csv $how.csv --links $how.links >$how.txt
done
cmp auto.json off.json && cmp auto.csv off.csv && cmp auto.links off.links
diff <(sed '/^network/d' auto.txt) <(sed '/^network/d' off.txt)
grep '^network' auto.txt
orrery run -q step.orr -s sys.json -t net.yml --network aware --fold verify --fold-why 2>&1 >/dev/null | tail -1

orrery gen topology -q rail --servers 4 --gpus 4 --nic 400Gbps -o rail.yml
orrery gen topology -q leaf-spine --hosts 16 --hosts-per-leaf 4 --spines 2 --nic 400Gbps -o ecmp.yml
printf 'dims: [4, 4]\n' >>ecmp.yml
printf 'routing: first\ndims: [4, 4]\n' >>rail.yml
sed 's/dims/routing: first\ndims/' ecmp.yml >leaf-spine.yml
orrery gen all_reduce -q -n 16 --comm-size 1048576 -o ar.orr >/dev/null
for net in rail leaf-spine ecmp; do
    orrery run -q ar.orr -s sys.json -t $net.yml --network graph --fold verify --fold-why 2>&1 >/dev/null | tail -1
done

orrery gen goal -q dissemination -n 64 -d 1000 -o d.goal >/dev/null
for how in auto off; do
    orrery run -q d.goal --network loggops --fold $how --fold-why --csv $how.csv --json >$how.json
done
cmp auto.csv off.csv && diff <(sed '/"seconds"/d; /"ranks_simulated"/d' auto.json) <(sed '/"seconds"/d; /"ranks_simulated"/d' off.json)
orrery run -q d.goal --network loggops --fold verify --fold-why 2>&1 >/dev/null
orrery gen goal -q binomialtreebcast -n 64 -d 1000 -o b.goal >/dev/null
orrery run -q b.goal --network loggops --fold-why 2>&1 >/dev/null
orrery run -q d.goal --network loggops | grep "ranks simulated"

# Several networks at once.
for how in auto off verify; do
    orrery run -q step.orr -s sys.json -t net.yml --compare unaware,aware --fold $how --json | grep -o '"[fr][a-z_]*_\(ns\|simulated\)":[0-9]*'
done
