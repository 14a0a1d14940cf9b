# SPDX-License-Identifier: Apache-2.0
# run --gantt: below the tables, when each rank was busy; as wide as 80 columns where there is no terminal.
orrery -q gen three_layer_data_parallel --ranks 4 -o step.orr
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 2,
 "all-reduce-implementation": ["ring"]}' >sys.json
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
export LC_ALL=C
orrery run -q step.orr -s sys.json -t net.yml --gantt --fold off >both.txt
orrery run -q step.orr -s sys.json -t net.yml --fold off >tables.txt
head -n "$(wc -l <tables.txt)" both.txt | cmp - tables.txt
tail -n "+$(($(wc -l <tables.txt) + 1))" both.txt
awk 'length($0) > 80' both.txt
LC_ALL=C.UTF-8 orrery run -q step.orr -s sys.json -t net.yml --gantt | grep -c '█'
