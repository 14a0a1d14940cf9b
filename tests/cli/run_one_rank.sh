# SPDX-License-Identifier: Apache-2.0
# The trace of one rank runs on a network of one: its collectives are over at once. More ranks, more dimensions, or the
# old name: two at least.
printf '{"scheduling-policy": "LIFO", "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"], ' >system.json
printf '"local-mem-bw": 50}\n' >>system.json
printf 'topology: [ Ring ]\nnpus_count: [ 1 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >one.yml
printf 'topology: [ Ring, Ring ]\nnpus_count: [ 2, 1 ]\nbandwidth: [ 50, 50 ]\nlatency: [ 500, 500 ]\n' >two.yml
printf '{"memory-type": "NO_MEMORY_EXPANSION"}\n' >memory.json
orrery gen -q all_reduce --ranks 1 -o one.orr
orrery gen -q all_reduce --ranks 2 -o two.orr
orrery gen -q all_reduce --ranks 1 -o one
for network in unaware aware graph; do
    orrery run -q one.orr -s system.json -t one.yml -n "$network" --json | grep finished_ranks
done
orrery run -q two.orr -s system.json -t one.yml 2>&1
echo "status $?"
orrery run -q two.orr -s system.json -t two.yml 2>&1
echo "status $?"
AstraSim_Analytical_Congestion_Unaware --workload-configuration=one --system-configuration=system.json \
    --network-configuration=one.yml --remote-memory-configuration=memory.json >/dev/null 2>&1
echo "old name: status $?"
