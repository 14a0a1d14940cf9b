# SPDX-License-Identifier: Apache-2.0
# room: astra_sim
# Each damaged configuration file gives one error that says where and what was expected.
orrery gen -q all_reduce --ranks 4 -o step.orr
cp "$ORR_ROOT"/tests/broken/sim/* .
printf '{"scheduling-policy": "LIFO", "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"], ' >system.json
printf '"local-mem-bw": 50}\n' >>system.json
printf 'topology: [ Switch ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >network.yml
printf '{"memory-type": "NO_MEMORY_EXPANSION"}\n' >memory.json
printf '{"1": [0, 1]}\n' >groups.json
orrery run -q step.orr -s system.json -t network.yml -m memory.json -g groups.json >/dev/null || echo "sound files: $?"
for file in system_* network_* memory_* groups_*; do
    system=system.json network=network.yml memory=memory.json groups=groups.json
    eval "${file%%_*}=$file"
    case $file in
    system_no_*) # defaults are ours; the old names need these keys
        orrery run -q step.orr -s "$file" -t network.yml -n unaware >/dev/null || echo "$file: status $?"
        orrery convert -q et step.orr -o step
        AstraSim_Analytical_Congestion_Unaware --workload-configuration=step --system-configuration="$file" \
            --network-configuration=network.yml --remote-memory-configuration=memory.json 2>&1 >/dev/null
        echo "  status $?"
        continue
        ;;
    esac
    orrery run -q step.orr -s "$system" -t "$network" -n unaware -m "$memory" -g "$groups" 2>&1
    echo "  status $?"
done
