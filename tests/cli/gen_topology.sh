# SPDX-License-Identifier: Apache-2.0
# Every shape in every kind of file, on every network model; and how it is said.
orrery -q gen all_reduce --ranks 16 --comm-size 65536 -o a
echo '{"scheduling-policy": "LIFO", "local-mem-bw": 100, "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]}' >sys.json
finished() {
    orrery -q run a -s sys.json -t "$1" --compare unaware,aware,packet | awk '$2 ~ /^[0-9]+$/ {print $1, $2}'
}
try() {
    name=$1
    shift
    for ending in yml txt; do
        orrery -q gen topology "$@" --latency 500ns -o "$name.$ending" || echo "$name.$ending: not written"
        finished "$name.$ending" >"$name.$ending.out"
        [ "$(wc -l <"$name.$ending.out")" = 3 ] || echo "$name.$ending: did not run on all three"
        # contention and packets' heads take time, never give any
        awk '{t[$1] = $2} END {exit !(t["unaware"] <= t["aware"] && t["unaware"] < t["packet"])}' "$name.$ending.out" ||
            echo "$name.$ending: times out of order"
    done
}
try switch switch --hosts 16 --nic 400Gbps
try leaf-spine leaf-spine --hosts 16 --hosts-per-leaf 4 --spines 2 --oversubscription 2 --nic 400Gbps
try fat-tree fat-tree --k 4 --nic 400Gbps
try torus torus --size 4x2x2 --nic 400Gbps
try dragonfly dragonfly --routers 2 --hosts-per-router 2 --groups 4 --global-links 2 --nic 400Gbps --global-rate 800Gbps --global-latency 1us
try servers servers --servers 4 --gpus 4 --servers-per-leaf 2 --spines 2 --nvlink 900GB/s --nvlink-latency 100ns --nic 400Gbps
try rail rail --servers 4 --gpus 4 --rails 4 --spines 2 --nvlink 900GB/s --nic 400Gbps
for tree in leaf-spine fat-tree; do
    orrery -q gen topology --from $tree.yml -o $tree.topo && finished $tree.topo >$tree.out
    cmp $tree.out $tree.yml.out && echo "$tree: htsim's file runs as ours"
done
# one switch is one dimension of ASTRA-sim's: 400 Gb/s are 46.56612873077393 of its GB/s
printf 'topology: [Switch]\nnpus_count: [16]\nbandwidth: [46.56612873077393]\nlatency: [500]\n' >astra.yml
finished astra.yml >astra.out
cmp astra.out switch.yml.out && echo "one switch: as the network file of ASTRA-sim"
orrery -q gen topology switch --hosts 3 --nic 100Gbps --latency 1us -o -
orrery -q gen topology rail --servers 2 --gpus 2 --nic 100Gbps --nvlink 900GB/s --latency 1us --gpu-type A100 -o -
# links take 500 ns and those of NVLink 25 ns, unless it is said
orrery -q gen topology servers --servers 2 --gpus 1 --nic 100Gbps --nvlink 1800Gbps -o -
orrery -q gen topology torus --size 3 --nic 100Gbps -f yaml -o -
orrery -q gen topology --from rail.txt -f yaml -o - | head -n 8
orrery gen topology fat-tree --k 4 --nic 100Gbps --latency 1us -o t.topo --json
orrery gen topology --list rail
orrery gen topology --list switch --json
for wrong in '' 'cube' 'switch -o x' 'switch --hosts 4 --k 4 --nic 1Gbps -o x' 'switch --hosts 4 --nic fast -o x' \
    'switch --hosts 4 --nic a{b -o x' 'switch --hosts 1 --nic 1Gbps -o x' 'fat-tree --k 5 --nic 1Gbps -o x' \
    'torus --size 0x4 --nic 1Gbps -o x' 'torus --size 4096x4096x4096 --nic 1Gbps -o x' \
    'leaf-spine --hosts 16000000 --hosts-per-leaf 1 --spines 4096 --nic 1Gbps -o x' \
    'rail --servers 2 --gpus 4 --rails 3 --nic 1Gbps -o x' '--from torus.txt -o x.topo' '--from missing.txt -o x' \
    '--from sys.json -o x' '--from torus.txt --hosts 3 -o x' 'switch --from torus.txt -o x' \
    'switch --hosts 4 --nic 1Gbps -o - --json' 'switch --hosts 4 --nic 1Gbps'; do
    orrery gen topology $wrong 2>&1 | head -n 1
    [ ! -e x ] && [ ! -e x.topo ] || echo "$wrong: a file was written"
done
