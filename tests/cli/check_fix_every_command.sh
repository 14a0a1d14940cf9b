# SPDX-License-Identifier: Apache-2.0
# room: chakra, astra_sim
# What check --fix writes with no error or warning left is taken by every command that takes traces, under new and old names.
cat >system.json <<'EOF'
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
 "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"], "collective-optimization": "localBWAware",
 "local-mem-bw": 1600}
EOF
printf 'topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n' >network.yml
echo '{"memory-type": "NO_MEMORY_EXPANSION"}' >memory.json
taken= empty= left= warned=
try() {
    "$@" >out 2>&1 || echo "$name: $*: exit $?: $(tail -n 1 out)"
}
for file in "$ORR_ROOT"/tests/broken/et/*.et; do
    name=$(basename "$file" .et)
    if ! orrery check -q --fix "$file" -o "$name.0.et" >/dev/null 2>&1; then
        left="$left $name"
        continue
    fi
    if [ "$(orrery feed "$name.0.et" | wc -l)" = 0 ]; then
        empty="$empty $name"
        continue
    fi
    if orrery check "$name.0.et" 2>&1 | grep -q 'warning: '; then
        warned="$warned $name"
        continue
    fi
    taken="$taken $name"
    cp "$name.0.et" "$name.1.et"
    try orrery check "$name"
    try orrery info "$name"
    try orrery feed --order v2 "$name.0.et"
    for kind in json dot graphml; do
        try orrery view $kind "$name.0.et" -o view
    done
    try orrery convert et "$name" -o copy
    try orrery convert et "$name" -o copy.orr
    try orrery run "$name" -s system.json -t network.yml
    try orrery run "$name" -n loggops
    try orrery report "$name" -s system.json -t network.yml -o report.html
    try chakra_jsonizer --input_filename "$name.0.et" --output_filename out.json
    try chakra_visualizer --input_filename "$name.0.et" --output_filename out.graphml
    for network in Unaware Aware; do
        try AstraSim_Analytical_Congestion_$network --workload-configuration="$name" --system-configuration=system.json \
            --remote-memory-configuration=memory.json --network-configuration=network.yml
    done
done
echo "taken:$taken"
echo "nothing but broken nodes:$empty"
echo "warnings stay:$warned"
echo "check --fix says what it cannot mend:$left"
