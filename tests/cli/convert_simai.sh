# SPDX-License-Identifier: Apache-2.0
# Workloads of SimAI as AICB writes them: groups along four axes, recomputation, and what is left out; then simulated on
# a Spectrum-X topology with a configuration like SimAI's, whose ECN maps have no entry for NVLink.
cat >moe.txt <<'END'
HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 8 ga: 1 all_gpus: 8 checkpoints: 1 0 checkpoint_initiates: 1 2 pp_comm 0
4
grad_gather	-1	1	NONE	0	1	NONE	0	1	ALLGATHER	4000000	100
embedding_layer	-1	622731	ALLREDUCE	50331648	1	NONE	0	15091072	NONE	0	100
mlp_moelayer	-1	1500	ALLTOALL_EP	100663296	1	ALLTOALL_EP	1000	1	NONE	0	100
norm	-1	0	BROADCAST	16384	1	NONE	0	1	REDUCESCATTER_DP_EP	38654705664	100
END
orrery convert simai moe.txt -o moe 2>&1
cat moe.json
orrery view json moe.5.et --format jsonl 2>/dev/null |
    sed 's/{"name":"\([a-z_]*\)","\([a-zA-Z0-9]*\)":\("*[^}"]*"*\)}/\1=\3/g; s/"type":"\([A-Z_]*\)"/\1/' | cut -c1-190
orrery check moe
printf 'MICRO\n2\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 1048576 1\nb -1 1 NONE 0 1 NONE 0 1 ALLTOALL 2097152 1\n' >micro.txt
orrery convert simai micro.txt -o micro.orr 2>&1
echo "status $?"
orrery convert simai micro.txt --npus 4 --passes 3 -o micro.orr 2>&1
orrery info micro.orr | grep -E 'ranks|COMM_COLL'

echo "--- simulated"
printf 'HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 1 vpp: 8 ga: 1 all_gpus: 4 checkpoints: 0 ' >ar.txt
printf 'checkpoint_initiates: 0\n5\nembedding_layer -1 556000 ALLREDUCE 1677721 1 NONE 0 1 NONE 0 1 \n' >>ar.txt
orrery convert simai ar.txt -o ar.orr 2>&1
{
    printf '7 4 1 2 10 H100\n4 5 6\n'
    for r in 0 1 2 3; do
        printf '%d 4 2880Gbps 0.000025ms 0\n%d %d 400Gbps 0.0005ms 0\n' $r $r $((5 + r / 2))
    done
    printf '5 6 1600Gbps 0.0005ms 0\n5 6 1600Gbps 0.0005ms 0\n'
} >Spectrum-X
cat >SimAI.conf <<'END'
TRACE_FILE simulation/trace1.txt
TRACE_OUTPUT_FILE simulation/mix.tr
FCT_OUTPUT_FILE simulation/fct.txt
PFC_OUTPUT_FILE simulation/pfc.txt
PACKET_PAYLOAD_SIZE 9000
CC_MODE 1
ALPHA_RESUME_INTERVAL 1
RP_TIMER 900
EWMA_GAIN 0.00390625
FAST_RECOVERY_TIMES 1
RATE_AI 50Mb/s
RATE_HAI 100Mb/s
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
GLOBAL_T 0
KMAX_MAP 2 400000000000 3200 1600000000000 2400
KMIN_MAP 2 400000000000 800 1600000000000 600
PMAX_MAP 2 400000000000 0.2 1600000000000 0.2
BUFFER_SIZE 32
END
printf '{"scheduling-policy": "LIFO", "preferred-dataset-splits": 4, "local-mem-bw": 50, ' >sys.json
printf '"all-reduce-implementation": ["ring"]}\n' >>sys.json
orrery run -q ar.orr -s sys.json -n packet -t Spectrum-X --packet-config SimAI.conf 2>&1 | head -n 2
wc -l <simulation/fct.txt

echo "--- broken"
try() {
    printf "$1" >bad.txt
    orrery convert simai bad.txt -o bad.orr 2>&1
    echo "status $?"
}
try ''
try 'DATA\n1\n'
try 'HYBRID_TRANSFORMER model_parallel_NPU_group: 3 all_gpus: 8\n1\n'
try 'HYBRID_TRANSFORMER all_gpus: 8 tp: 2\n1\n'
try 'HYBRID_TRANSFORMER all_gpus: 8\nmany\n'
try 'HYBRID_TRANSFORMER all_gpus: 8\n1\nl -1 5 ALLREDUCE_TP 5 5 NONE 0 5 NONE 0 1\n'
try 'HYBRID_TRANSFORMER all_gpus: 8\n1\nl -1 5 ALLREDUCE -5 5 NONE 0 5 NONE 0 1\n'
try 'HYBRID_TRANSFORMER all_gpus: 8\n1\nl -1 5 ALLREDUCE 5 5 NONE\n'
try 'HYBRID_TRANSFORMER_FWD_IN_BCKWD all_gpus: 8 checkpoints: 1 7 checkpoint_initiates: 0\n1\nl -1 5 NONE 0 5 NONE 0 5 NONE 0 1\n'
[ ! -e bad.orr ]
