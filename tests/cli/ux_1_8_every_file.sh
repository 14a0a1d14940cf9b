# SPDX-License-Identifier: Apache-2.0
# room: scale_sim
# A key that nobody knows is an error with file, line, column and the nearest known key, in every kind of file.
try() {
    echo "\$ orrery $*"
    orrery -q "$@" 2>&1 </dev/null | head -1
    echo "status ${PIPESTATUS[0]}"
}
orrery -q gen all_reduce --ranks 8 -o ar.orr
printf 'topology: [Switch]\nnpus_count: [8]\nbandwidth: [450]\nlatency: [500]\n' >net.yml
echo '{}' >sys.json
echo "--- links, shapes of networks"
printf 'ranks: 2\nswitches: [a]\nlinkss:\n  - {from: "0-1", to: a, bandwidth: 25GB/s}\n' >links.yml
try run ar.orr -s sys.json -t links.yml
printf 'ranks: 2\nswitches: [a]\nlinks:\n  - {from: "0-1", to: a, bandwith: 25GB/s}\n' >link.yml
try run ar.orr -s sys.json -t link.yml
printf 'generate: {type: switch, ranks: 8, bandwidth: 400Gb/s, latencyy: 500ns}\n' >shape.yml
try run ar.orr -s sys.json -t shape.yml
echo "--- logical dimensions, also of a network with dimensions; packets; slow ranks"
printf '{"logical-dims": ["8"],\n "logical-dim": 3}\n' >logical.json
try run ar.orr -s sys.json -t net.yml -n packet --logical logical.json
try run ar.orr -s sys.json -t net.yml -n packet --packet-keys "CC_MODEX 3"
printf 'ranks: [{ranks: 3, computes: 0.5}]\n' >slow.yml
try run ar.orr -s sys.json -t net.yml --ranks-file slow.yml
echo "--- machines, their tables of collectives, chips"
printf 'base: dgx-h100\nscale_up:\n  bandwith: 450GB/s\n' >machine.yml
try machine check machine.yml
printf 'base: dgx-h100\ncollectives: table.yml\n' >tuned.yml
printf 'name: x\ngeneration: hopper\nchoice:\n  - {op: all_reduce, nodes: 1, belw: 512KiB, algorithm: ring, protocol: LL}\n' >table.yml
try machine check tuned.yml
try nccl-tests --machine tuned.yml
try run ar.orr --machine tuned.yml
printf 'lik: h200\n' >chip.yml
try chip show chip.yml
printf 'name: my\nrows: 128\ncolums: 128\nclock: 940MHz\n' >array.yml
printf 'Layer,m,n,k\nl,8,8,8\n' >layers.csv
try gemm layers.csv -n 2 --hardware array.yml
printf '[general]\nrun_name = x\n[architecture_presets]\nArrayHeigth : 32\n' >array.cfg
try scalesim -c array.cfg -t layers.csv -i gemm
echo "--- models, layers, orders, requests, sweeps"
printf 'format: orrery-model\nversion: 1\nfrom: gpt2\nlayer: 3\n' >model.yml
try model model.yml
printf 'Layer,m,n,k,strategi\nl,8,8,8,DATA\n' >strategy.csv
try gemm strategy.csv -n 2
printf 'placment: vee\n0: F0 B0\n1: F0 B0\n' >order.txt
try stage gpt2 --pp 2 --batch 1 --order order.txt
printf 'arrival_us,promt,output\n0,8,2\n' >requests.csv
try serve llama-3-8b --requests requests.csv
printf 'command: run\naxis:\n  tp: [1]\n' >sweep.yml
try sweep sweep.yml
printf 'command: stage\noptions: {model: gpt2, batchh: 2}\naxes:\n  tp: [1]\n' >option.yml
try sweep option.yml
