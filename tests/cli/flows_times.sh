# SPDX-License-Identifier: Apache-2.0
# Queue lengths are taken between QLEN_MON_START and QLEN_MON_END; SIMULATOR_STOP_TIME ends a run.
printf '4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n' >topology.txt
printf '2\n0 1 3 100 1000000 0\n2 1 3 100 1000000 0\n' >flow.txt
cat >config.txt <<'END'
TOPOLOGY_FILE topology.txt FLOW_FILE flow.txt CC_MODE 0 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps HAS_WIN 0
L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1 QLEN_MON_FILE q.txt QLEN_MON_START 20000 QLEN_MON_END 30000 QLEN_MON_INTERVAL 1000
END
# Packets arrive from 1082.88 ns on, every 82.88 ns, from either side: 229 each at 20 us; as many in all have left.
orrery -q run --flows -t config.txt >/dev/null
awk '{print $2, $3, $5, $6} END {print NR, "samples"}' q.txt | sed -n '1p;$p'
# A dead link: 4000 MiB at 100 Gb/s are 335.5 ms, doubled six times: 63 + 59 x 64 of them until the timer has gone off 65
# times are 1,288 s.  Looks every 100 ns rest meanwhile.
sed 's/1us 0$/1us 1/' topology.txt >dead.txt
echo TOPOLOGY_FILE dead.txt BUFFER_SIZE 4000 QLEN_MON_START 0 QLEN_MON_INTERVAL 100 QLEN_MON_END 1000000000000 >dead_config.txt
cat config.txt dead_config.txt >c.txt
orrery -q run --flows -t c.txt 2>&1 | head -n 1
echo SIMULATOR_STOP_TIME 0.00001 >>config.txt
orrery -q run --flows -t config.txt | grep 'flows done'
