# SPDX-License-Identifier: Apache-2.0
# What is made is well formed and runs to its end: experts in step, stages, caches that move, requests that come late.
cat >system.json <<'END'
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 2, "preferred-dataset-splits": 4,
 "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
 "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["direct"],
 "collective-optimization": "localBWAware", "local-mem-bw": 3350, "peak-perf": 989, "roofline-enabled": 1}
END
printf 'from: mixtral-8x7b\nlayers: 4\nname: short\n' >moe.yml
printf 'from: deepseek-v2-lite\nlayers: 3\nname: short\n' >mla.yml
printf 'arrival_us,prompt,output\n0,100,3\n200,700,2\n90000,40,4\n' >requests.csv

try() {
    orrery serve "$@" -o out.orr -q >/dev/null || return
    ranks=$(orrery info out.orr --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["ranks"])')
    printf 'topology: [Switch]\nnpus_count: [%d]\nbandwidth: [400]\nlatency: [500]\n' "$ranks" >network.yml
    orrery check out.orr >/dev/null || echo "not well formed: $*"
    orrery run out.orr -q --system system.json --topology network.yml >out.txt || return
    head -n 1 out.txt | sed 's/ after.*//'
}
try moe.yml --tp 2 --pp 2 --dp 4 --ep 8 -b 7 --prompt-tokens 30 --output-tokens 3
try moe.yml --tp 4 --ep 2 -b 2 --prompt-tokens 33 --output-tokens 3 --sequence-parallel
try mla.yml --tp 2 --cp 2 --decode-tp 4 --decode-dp 3 --decode-pp 3 -b 5 --prompt-tokens 64 --output-tokens 3
try mla.yml --tp 2 -r requests.csv --chunk 64 --max-batch 2
try moe.yml --dp 2 --pp 2 --decode-tp 8 -r requests.csv
try gpt2 --cp 2 --context all-gather --phase prefill --prompt-tokens 100
