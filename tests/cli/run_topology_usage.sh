# SPDX-License-Identifier: Apache-2.0
# Models and files that do not go together.
orrery -q gen all_reduce --ranks 4 -o a.orr
echo '{"scheduling-policy": "LIFO", "local-mem-bw": 100, "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]}' >sys.json
echo 'generate: {type: torus, size: [2, 2], bandwidth: 50GB/s}' >net.yml
printf 'topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >astra.yml
echo 'links: [{from: 0, to: 1, bandwidth: 0.5}]' >links.yml
orrery run a.orr -s sys.json -t net.yml -n packets; echo "status $?"
orrery run a.orr -s sys.json -t astra.yml --ranks-file links.yml -n unaware; echo "status $?"
orrery run a.orr -s sys.json -t astra.yml --ranks-file missing.yml; echo "status $?"
echo 'generate: {type: torus, size: [4, 4], bandwidth: 50GB/s}' >net.yml
orrery run a.orr -s sys.json -t net.yml; echo "status $?"
