# SPDX-License-Identifier: Apache-2.0
# room: astra_sim
# Under the old name unknown keys of system, network and memory files are ignored, as there; a remark on stderr says so.
orrery gen -q all_reduce --ranks 4 -o a
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\nlatencies: 3\n' >net.yml
printf '{"memory-type": "NO_MEMORY_EXPANSION", "remote-mem-bandwidth": 1}' >mem.json
printf '{"scheduling-policy": "LIFO", "preferred-dataset-splits": 1, "local-mem-bw": 50, "frobnicate": 1,\n "all-reduce-implementation": ["ring"]}' >sys.json
AstraSim_Analytical_Congestion_Unaware --workload-configuration=a --system-configuration=sys.json --network-configuration=net.yml --remote-memory-configuration=mem.json | grep -c finished
