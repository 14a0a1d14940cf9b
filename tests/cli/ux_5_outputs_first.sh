# SPDX-License-Identifier: Apache-2.0
# A path that cannot be written is refused before the work: none of these reads its input, which is not there, or works for minutes.
try() {
    echo "\$ orrery $*"
    orrery -q "$@" 2>&1 </dev/null | head -1
}
orrery gen -q all_reduce --ranks 4 -o a.orr
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
printf '{"all-reduce-implementation": ["ring"]}' >sys.json
for option in report timeline csv links trace-log; do
    try run none.orr -s sys.json -t net.yml --$option nowhere/x.csv
done
try run none.orr -s sys.json -t net.yml --compare fluid,aware --compare-chart nowhere/x.svg
try run none.orr -s sys.json -t net.yml -n packet --series nowhere/x.csv
try report none.orr -s sys.json -t net.yml -o nowhere/x.html
for option in write csv report; do
    try plan llama-3-405b --machine dgx-h100:2048 --batch 2048 --$option nowhere/x.csv
done
try stage llama-3-405b --tp 8 --pp 16 --dp 128 --batch 2048 -o nowhere/x.orr
try serve llama-3-405b --tp 8 -o nowhere/x.orr
try link none.json none.json -o nowhere/x.et
try link none.json none.json -o x.et --timeline nowhere/x.json
try convert a.orr -o nowhere/x.json
try nccl none.sqlite -o nowhere/x.goal
try demo -o sys.json/demo
for view in json svg graphml timeline; do
    try view $view none.et -o nowhere/x
done
try gemm none.csv -n 16 -o nowhere/x.orr
try calibrate nccl none.txt --machine dgx-h100 -o nowhere/x.yml
try calibrate kernels none.csv --like h100 -o nowhere/x.yml
try calibrate steps none.log --like h100 --predicted 100 -o nowhere/x.yml
try capture -o nowhere/x.orr none.py
try capture -o nowhere/x.json.gz none.py
ls -d nowhere x.* 2>&1
