# SPDX-License-Identifier: Apache-2.0
# room: astra_sim
# Damaged logging files: one message each, with its place, and nothing is written.
orrery gen -q one_comp_node --ranks 2 -o step
printf '{"scheduling-policy": "LIFO"}\n' >system.json
printf 'topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >network.yml
printf '{"memory-type": "NO_MEMORY_EXPANSION"}\n' >memory.json
for file in "$ORR_ROOT"/tests/broken/logging/* "$ORR_ROOT"/tests/broken/toml/*; do
    cp "$file" .
    AstraSim_Analytical_Congestion_Aware --workload-configuration=step --system-configuration=system.json \
        --network-configuration=network.yml --remote-memory-configuration=memory.json \
        --logging-configuration="${file##*/}" 2>&1
    [ $? = 3 ] || echo "${file##*/}: status is not 3"
    rm "${file##*/}"
done
AstraSim_Analytical_Congestion_Aware --workload-configuration=step --system-configuration=system.json \
    --network-configuration=network.yml --remote-memory-configuration=memory.json --logging-configuration=none.toml 2>&1
echo "status $?"
ls
