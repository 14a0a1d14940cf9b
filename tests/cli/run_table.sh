# SPDX-License-Identifier: Apache-2.0
# The table of a run: two dimensions, collectives in groups, messages between nodes.
printf 'topology: [Switch, Ring]\nnpus_count: [4, 2]\nbandwidth: [200, 50]\nlatency: [300, 1000]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 4,
 "collective-optimization": "localBWAware", "all-reduce-implementation": ["ring", "ring"],
 "all-gather-implementation": ["ring", "ring"]}' >sys.json
printf '{"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-bw": 100}' >mem.json
orrery gen -q data_parallel --ranks 8 -o step.orr
orrery run -q step.orr -s sys.json -t net.yml -m mem.json
printf '\nin pieces\n'
orrery gen -q compare_pipeline_parallel --ranks 8 -o pipe.orr
orrery run -q pipe.orr -s sys.json -t net.yml
