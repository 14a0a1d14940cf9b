# SPDX-License-Identifier: Apache-2.0
# room: scale_sim
# A few bytes must not take minutes, nor all memory: work that grows with a number in the input is bounded, and says so.
t() { orrery -q "$@" 2>&1 | tail -1; }
printf '[general]\nrun_name = a\n\n[architecture_presets]\nArrayHeight: 8\nArrayWidth: 8\nIfmapSramSzkB: 1\nFilterSramSzkB: 1\nOfmapSramSzkB: 1\nIfmapOffset: 0\nFilterOffset: 10000000\nOfmapOffset: 20000000\nDataflow: ws\nBandwidth: 10\nMemoryBanks: 1\n\n[run_presets]\nInterfaceBandwidth: CALC\n' >a.cfg
printf 'Layer, M, N, K,\nqkv, 2147483648, 96, 32,\n' >rows.csv
printf 'Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\nconv,8,8,3,3,4,2147483648,2,\n' >filters.csv
printf 'Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\nconv,1073741826,3,536870912,2,1,1,1,\n' >high.csv
for layers in rows filters high; do
    t scalesim -c a.cfg -t $layers.csv --csv
done
orrery gen -q all_reduce --ranks 4 --comm-size 8589934592 -o big
printf 'generate: {type: leaf-spine, ranks: 4, spines: 2, ranks_per_leaf: 4, bandwidth: 400Gb/s}\n' >net.yml
head -c 200000 /dev/zero | tr '\0' '[' >open.txt
{ printf '{"links": [{"from": "leaf1", "to": "spine0", "failed": '; cat open.txt; printf '}]}\n'; } >ranks.yml
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]}' >sys.json
t run big -s sys.json -t net.yml --ranks-file ranks.yml
# 51 million packets, half a second of CPU time: what repeats itself exactly is skipped (half a minute with APPROX 0).
(ulimit -t 15; orrery -q run big -s sys.json -t net.yml -n packet | head -1)
{ printf 'arrival_us,prompt,output\n0,1,1\n40,21,65536\n'; } >requests.csv
t serve llama-3-8b -r requests.csv --chunk 512 | grep -c .
for old in v1 v2 v3; do
    t scalesim -c a.cfg -t filters.csv --compat $old -o old
done
first() { orrery -q "$@" 2>&1 | head -1 | cut -c1-60; }
first stage llama-3-8b --layers 1000000000
first stage llama-3-8b --pp 32 --batch 1000000 -o x.orr
first stage llama-3-8b --layers 2 --steps 1000000 -o x.orr
first gemm -e dlrm --repeat 1000000 -o x.orr
first gemm -e dlrm --passes 1000000 -o x.orr
printf 'DATA\n2\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\nb -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n' >text.txt
first convert text text.txt --npus 4 --passes 1000000 -o x.orr
printf 'HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4\n30\n' >simai.txt
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    printf 'layer%d -1 100 NONE 0 100 NONE 0 100 NONE 0 100\n' "$i"
done >>simai.txt
first convert simai simai.txt --passes 65536 -o x.orr
first serve llama-3-8b --batch 1048576 --output-tokens 16384 --max-batch 1 -o x.orr
first gen layered --nodes 4000000000 -o x.et
first gen compare_pipeline_parallel --ranks 1048576 -o x.orr
first run big -s sys.json -t net.yml --hosts 2147483648
first plan llama-3-8b --machine dgx-h100:4 --batch 1000000007 --seq 8192
first plan llama-3-8b --machine dgx-h100:4 --batch 2147483646 --seq 8192
