# SPDX-License-Identifier: Apache-2.0
# One packet over one cable: 1036 bytes at 100 Gb/s are 82.88 ns, 48 bytes back 3.84 ns, 1 us each way: 2086.72 ns.
printf '2 0 1\n\n0 1 100Gbps 1us 0\n' >topology.txt
printf '1\n0 1 3 100 1000 0\n' >flow.txt
cat >config.txt <<'END'
TOPOLOGY_FILE topology.txt FLOW_FILE flow.txt CC_MODE 12 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps
FCT_OUTPUT_FILE fct.txt PFC_OUTPUT_FILE pfc.txt L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1
END
orrery run --flows -t config.txt
cat fct.txt pfc.txt
orrery -q run --flows=flow.txt -t config.txt --compat ns3 --json
cat fct.txt
echo COLOUR red >>config.txt
AstraSimNetwork --network-configuration=config.txt | head -n 1
orrery run --flows=flow.txt -t config.txt extra 2>&1
orrery run --flows -t nothing.txt 2>&1
echo "status $?"
# A topology alone is enough; then there is no configuration to name.
orrery -q run --flows=flow.txt -t topology.txt --json | grep -o '"config":[^,]*'
# Nothing is written that the configuration does not name.
mkdir quiet
sed 's/FCT_OUTPUT_FILE fct.txt PFC_OUTPUT_FILE pfc.txt//; /COLOUR/d' config.txt >quiet/config.txt
cp topology.txt flow.txt quiet
(cd quiet && orrery -q run --flows -t config.txt >/dev/null && orrery -q run --flows=flow.txt -t topology.txt >/dev/null && ls)
