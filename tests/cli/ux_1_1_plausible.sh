# SPDX-License-Identifier: Apache-2.0
# A run that shows what cannot be says so, with cause and remedy; a plausible one says nothing.
printf 'topology: [Switch]\nnpus_count: [8]\nbandwidth: [450]\nlatency: [500]\n' >net.yml
system() {
    printf '{"scheduling-policy": "LIFO", "endpoint-delay": 10, "preferred-dataset-splits": 4, %s,
 "active-chunks-per-dimension": 4, "local-mem-bw": %s, "peak-perf": %s, "roofline-enabled": %s,
 "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
 "reduce-scatter-implementation": ["ring"]}' '"_": 0' "$1" "$2" "$3"
}
system 3350 989 1 >sys.json
system 3350 989 0 >no_roofline.json
system 3.35 989e12 1 >units.json
orrery -q gen all_reduce --ranks 8 --comm-size 1073741824 -o ar.orr
orrery -q stage llama-3-8b --layers 8 --dp 8 --seq 8192 --batch 64 -o step.orr >sizes
say() {
    echo "--- $*"
    orrery -q run "$@" --json | sed -n '/"warnings": \[\]/p; /"warnings": \[$/,/]/p'
    orrery -q run "$@" | grep implausible
}
say ar.orr -s sys.json -t net.yml --network unaware
say ar.orr -s sys.json -t net.yml --network aware
say step.orr -s sys.json -t net.yml --network aware
say step.orr -s sys.json -t net.yml --network aware --ideal
say step.orr -s no_roofline.json -t net.yml --network aware
say step.orr -s units.json -t net.yml --network aware
say step.orr --machine dgx-h100 --network aware
orrery -q stage llama-3-8b --layers 8 --pp 8 --seq 8192 --batch 2 -o few.orr >sizes
say few.orr --machine dgx-h100
