# SPDX-License-Identifier: Apache-2.0
# What the run waited for: a pipeline, whose path passes through all ranks.
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 2,
 "all-reduce-implementation": ["ring"]}' >sys.json
orrery gen -q compare_pipeline_parallel --ranks 4 -o pipe.orr
orrery run -q pipe.orr -s sys.json -t net.yml --critical-path | sed -n '/critical path/,$p'
orrery run -q pipe.orr -s sys.json -t net.yml --critical-path=0
