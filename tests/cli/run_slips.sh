# SPDX-License-Identifier: Apache-2.0
# Slips of the hand: the message names the line, and what was probably meant.
orrery gen -q all_reduce --ranks 4 -o a
orrery gen -q one_remote_mem_load_node --ranks 4 -o memory.orr
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "preferred-dataset-splits": 1, "local-mem-bw": 50,\n "all-reduce-implementation": ["ring"]}' >sys.json
try() {
    orrery run -q "$@" 2>&1
    echo "  status $?"
}
sed 's/bandwidth/bandwith/' net.yml >bandwith.yml
try a -s sys.json -t bandwith.yml
printf 'generate: {type: rails, ranks: 32}\n' >rails.yml
try a -s sys.json -t rails.yml
printf 'generate: {type: rails, domians: 4, ranks_per_domain: 1, bandwidth: 50GB/s}\n' >domians.yml
try a -s sys.json -t domians.yml
try a -s net.yml -t sys.json
try memory.orr -s sys.json -t net.yml
try a --critical-path 5 -s sys.json -t net.yml
try --critical-path 5 a -s sys.json -t net.yml
try a.0.et a.1.et -s sys.json -t net.yml
for option in report timeline csv links trace-log; do
    try a -s sys.json -t net.yml --$option nowhere/x
done
mkdir folder && try a -s sys.json -t net.yml --csv folder
sed 's/"local-mem-bw"/"roofline-enabledx": 1, "local-mem-bw"/' sys.json >slip.json
try a -s slip.json -t net.yml
sed 's/preferred-dataset-splits/active-chunks-per-dimensionx/' sys.json >slip.json
try a -s slip.json -t net.yml
sed 's/"local-mem-bw"/"frobnicate": 1, "local-mem-bw"/' sys.json >slip.json
try a -s slip.json -t net.yml
# Keys of ASTRA-sim without effect, and remarks.
sed 's/"local-mem-bw"/"boost-mode": 0, "_why": "a test", "local-mem-bw"/' sys.json >fine.json
orrery run -q a -s fine.json -t net.yml | head -1
