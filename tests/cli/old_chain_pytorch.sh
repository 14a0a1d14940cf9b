# SPDX-License-Identifier: Apache-2.0
# room: chakra, astra_sim
# The chain of Chakra's user guide, as typed, for four ranks: link, convert, simulate.  The converter leaves out the process,
# which its nodes name as a control parent; that is passed over, as is a METADATA node.  What check --fix writes runs too.
python3 "$ORR_ROOT/tests/golden/torch_inputs.py" four . || exit 1
for rank in 0 1 2 3; do
    chakra_trace_link --rank $rank --chakra-host-trace host$rank.json --chakra-device-trace device$rank.json --output-file linked$rank.json 2>/dev/null || exit 1
    chakra_converter PyTorch --input linked$rank.json --output trace.$rank.et 2>/dev/null || exit 1
done
cat >system.json <<EOF
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
 "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
 "all-to-all-implementation": ["ring"], "collective-optimization": "localBWAware", "local-mem-bw": 1600, "boost-mode": 0,
 "roofline-enabled": 0, "peak-perf": 900}
EOF
printf 'topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n' >network.yml
echo '{"memory-type": "NO_MEMORY_EXPANSION"}' >memory.json
simulate() {
    AstraSim_Analytical_Congestion_Unaware --workload-configuration="$1" --system-configuration=system.json \
        --remote-memory-configuration=memory.json --network-configuration=network.yml | grep -o 'sys\[.*finished.*cycles, .*'
}
orrery check trace.0.et | grep -o 'warning.*'
simulate trace
mkdir fixed
for rank in 0 1 2 3; do
    orrery check -q --fix trace.$rank.et -o fixed/trace.$rank.et >/dev/null || exit 1
done
echo "repaired:"
simulate fixed/trace
orrery run fixed/trace -s system.json -t network.yml | grep -E 'ranks|rank 0'
orrery info fixed/trace | head -n 2
orrery convert et fixed/trace.0.et -o copy.jsonl && orrery feed fixed/trace.0.et | wc -l
chakra_jsonizer --input_filename fixed/trace.0.et --output_filename fixed.jsonl && echo "written as JSON"
