# SPDX-License-Identifier: Apache-2.0
# When each node was issued and ended: as orrery run writes it, and as ASTRA-sim does into its log.
orrery gen -q two_comp_nodes_dependent --ranks 2 -o step
printf '{"scheduling-policy": "LIFO", "trace-enabled": 1}\n' >system.json
printf 'topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >network.yml
printf '{"memory-type": "NO_MEMORY_EXPANSION"}\n' >memory.json
orrery run -q step -s system.json -t network.yml --trace-log trace.txt >/dev/null
cat trace.txt
AstraSim_Analytical_Congestion_Aware --workload-configuration=step --system-configuration=system.json \
    --network-configuration=network.yml --remote-memory-configuration=memory.json >console.txt
grep -c 'issue,' console.txt
sed 's/^\[[^]]*\] //' log/log.log
