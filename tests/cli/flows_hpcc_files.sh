# SPDX-License-Identifier: Apache-2.0
# room: ns3
# Files as HPCC's own example has them: more links, flows and traced nodes than the heads announce, traced nodes that are
# not in the network, words after the records, a sample at the instant the flows start, and no folder for the output.
mkdir mix
{
    printf '4 1 3\n0\n0 1 100Gbps 0.001ms 0\n0 2 100Gbps 0.001ms 0\n0 3 100Gbps 0.001ms 0\n'
    printf '0 4 25Gbps 0.001ms 0\n0 5 25Gbps 0.001ms 0\n\nFirst line: total node #, switch node #, link #\n'
} >mix/topology.txt
printf '2\n2 1 3 100 200000 2\n3 1 3 100 200000 2\n4 1 3 100 150000 2\n\nFirst line: # of flows\n' >mix/flow.txt
printf '6\n0 1 2 3 4 5\n\nFirst line: tracing node #\n' >mix/trace.txt
cat >mix/config.txt <<'END'
TOPOLOGY_FILE mix/topology.txt
FLOW_FILE mix/flow.txt
TRACE_FILE mix/trace.txt
TRACE_OUTPUT_FILE out/mix.tr
FCT_OUTPUT_FILE out/fct.txt
PFC_OUTPUT_FILE out/pfc.txt
CC_MODE 3
RATE_AI 50Mb/s
RATE_HAI 100Mb/s
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
KMAX_MAP 1 100000000000 1600
KMIN_MAP 1 100000000000 400
PMAX_MAP 1 100000000000 0.2
QLEN_MON_FILE out/qlen.txt
QLEN_MON_START 2000000000
END
orrery run --flows -t mix/config.txt --compat ns3 2>notes.txt | grep done
cat notes.txt out/fct.txt
ls out
rm -r out
orrery run --flows -t mix/config.txt 2>notes.txt | grep done
cat notes.txt out/fct.txt
rm -r out
AstraSimNetwork --network-configuration=mix/config.txt 2>&1 | head -n 4
