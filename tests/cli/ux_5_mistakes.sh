# SPDX-License-Identifier: Apache-2.0
# The mistakes of the list "command line" that got no help, or the wrong one.
try() {
    echo "\$ orrery $*"
    orrery "$@" 2>&1 </dev/null | head -${lines:-2}
    echo
}
orrery gen -q all_reduce --ranks 4 -o a.orr
orrery gen -q all_reduce --ranks 4 -o a
printf 'topology: [Switch]\nnpus_count: [4]\nbandwith: [50]\nlatency: [500]\n' >wrong.yml
sed s/bandwith/bandwidth/ wrong.yml >net.yml
printf '{"all-reduce-implementation": ["ring"], "roofline-enabled": 1, "peak-perf": 900, "local-mem-bw": 3000}' >sys.json
printf 'generate: {type: rails, ranks: 32}\n' >rails.yml
try run a.orr -s sys.json -t wrong.yml
try run a.orr -s sys.json -t rails.yml
try run a.orr -s net.yml -t sys.json
try run a.orr -s sys.json -t net.yml --critical-path 5
try run a.0.et a.1.et -s sys.json -t net.yml
try run a.orr
try stage gpt2 --seq 16384 -o s.orr
try stage llama-3-8b --seq 16384 -o s.orr
try stage gpt2 --layers 24 -o s.orr
try stage gpt2 --device-memory 80G -o s.orr
try stage gpt2 --device-memory 80gb -o s.orr
try stage gpt2 --pp 4 -o s.orr
try version
try run --version
try gen all_reduce --ranks 1 -o one.orr
# A measured trace under roofline: link_accelerators; remote memory without a file: run_slips.
orrery run --help | grep -c '(default )'
ls fct.txt 2>&1
