# SPDX-License-Identifier: Apache-2.0
# room: ns3
# The documents of HPCC's simulator and of SimAI: waf, what run.py writes, topologies, and who reads the results.
mkdir mix
printf '5 1 4\n0\n0 1 100Gbps 0.001ms 0\n0 2 100Gbps 0.001ms 0\n0 3 100Gbps 0.001ms 0\n0 4 100Gbps 0.001ms 0\n' >mix/topology.txt
printf '2\n2 1 3 100 200000 2\n3 1 3 100 200000 2\n' >mix/flow.txt
printf '1\n0\n' >mix/trace.txt
cat >mix/config.txt <<'END'
TOPOLOGY_FILE mix/topology.txt
FLOW_FILE mix/flow.txt
TRACE_FILE mix/trace.txt
TRACE_OUTPUT_FILE mix/mix.tr
FCT_OUTPUT_FILE mix/fct.txt
PFC_OUTPUT_FILE mix/pfc.txt
SIMULATOR_STOP_TIME 4.00
CC_MODE 3
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
RP_TIMER 900
EWMA_GAIN 0.00390625
FAST_RECOVERY_TIMES 1
RATE_AI 50Mb/s
RATE_HAI 100Mb/s
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
KMAX_MAP 1 100000000000 1600
KMIN_MAP 1 100000000000 400
PMAX_MAP 1 100000000000 0.2
QLEN_MON_FILE mix/qlen.txt
END
cp "$(dirname "$(command -v orrery)")/simulation/waf" .
echo "-- HPCC: build and run"
./waf configure
./waf --run 'scratch/third mix/config.txt' | grep -E '^[0-9]+ flows|flows done'
cat mix/fct.txt
./waf --run 'scratch/second mix/config.txt'
echo "exit $?"
echo "-- HPCC: run.py --cc hp | hpccPint | dcqcn | timely | dctcp --trace flow --bw 100 --topo topology"
for cc in 3 10 1 7 8; do
    orrery run -q --flows -t mix/config.txt --packet-keys "CC_MODE $cc DCTCP_RATE_AI 1000Mb/s" --json | grep -c '"finished'
done
echo "-- HPCC: fct_analysis.py, trace_reader"
orrery run -q --flows -t mix/config.txt --series series.csv | grep -A 1 'time over ideal'
head -n 1 series.csv
echo "-- SimAI: gen_Topo_Template.py -topo Spectrum-X -g 8 -psn 1, -topo AlibabaHPN, -topo DCN+"
orrery gen topology rail --servers 2 --gpus 4 --nic 400Gbps --nvlink 2880Gbps --spines 1 -f simai -o Spectrum-X_8g && head -n 1 Spectrum-X_8g
orrery gen topology servers --servers 2 --gpus 4 --nic 400Gbps --nvlink 2880Gbps --spines 2 -f simai -o DCN && head -n 1 DCN
echo "-- SimAI: SimAI_analytical -w workload.txt -g 8 -nv 360 -nic 48.5 -n_p_s 8 -g_p_s 8"
printf 'HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 8 ga: 1 all_gpus: 8 checkpoints: 0 ' >w.txt
printf 'checkpoint_initiates: 0\n1\nembedding_layer -1 556000 ALLREDUCE 16777216 1 NONE 0 1 NONE 0 1\n' >>w.txt
cat >system.json <<'END'
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
 "all-reduce-implementation": ["ring"], "collective-optimization": "localBWAware", "local-mem-bw": 1600}
END
printf 'topology: [ Switch ]\nnpus_count: [ 8 ]\nbandwidth: [ 335.28 ]\nlatency: [ 500.0 ]\n' >network.yml
orrery convert -q simai w.txt -o w.orr && orrery run -q w.orr -n unaware -s system.json -t network.yml | head -n 1
