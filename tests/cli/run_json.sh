# SPDX-License-Identifier: Apache-2.0
# The JSON object of a run, twice the same; the version of the program is left out.
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 2,
 "all-reduce-implementation": ["ring"]}' >sys.json
orrery gen -q three_layer_data_parallel --ranks 4 -o step.orr
orrery run -q step.orr -s sys.json -t net.yml --json --critical-path=2 >one.json
orrery run -q step.orr -s sys.json -t net.yml --json --critical-path=2 >two.json
cmp one.json two.json
sed 's/"program": "orrery [0-9.]*"/"program": "orrery"/' one.json
