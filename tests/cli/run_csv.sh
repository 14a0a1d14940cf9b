# SPDX-License-Identifier: Apache-2.0
# One row a rank, below where it comes from.
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 2,
 "all-reduce-implementation": ["ring"]}' >sys.json
orrery gen -q three_layer_data_parallel --ranks 4 -o step.orr
orrery run -q step.orr -s sys.json -t net.yml --csv ranks.csv >/dev/null
sed 's/orrery [0-9.]*/orrery/' ranks.csv
