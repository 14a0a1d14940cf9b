# SPDX-License-Identifier: Apache-2.0
# A late rank with half the compute; a slow link; a failed link that is gone around, and one that cannot be.
orrery -q gen three_layer_sequential --ranks 4 -o step.orr
echo '{"scheduling-policy": "LIFO", "local-mem-bw": 100, "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]}' >sys.json
echo 'generate: {type: leaf-spine, ranks: 4, ranks_per_leaf: 2, spines: 2, bandwidth: 50GB/s, latency: 1us}' >net.yml
run() { orrery run step.orr -s sys.json -t net.yml "$@" | sed -n '1p;/finished after/p;/compute/p;/busiest/,/more/p'; }
run
echo 'ranks: [{ranks: 1, compute: 0.5, delay: 10us}]' >slow.yml
run --ranks-file slow.yml
echo 'links: [{from: leaf0, to: spine0, failed: true}, {from: spine1, to: leaf1, bandwidth: 0.01}]' >links.yml
run --ranks-file links.yml
echo 'links: [{from: leaf0, to: "spine[0-1]", failed: true}]' >cut.yml
orrery run step.orr -s sys.json -t net.yml --ranks-file cut.yml
echo "status $?"
