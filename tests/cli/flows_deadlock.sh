# SPDX-License-Identifier: Apache-2.0
# Five switches in a ring, a host at each; every flow goes two switches on, without a window.  Each switch waits for the
# next one: a cycle of pauses that nothing can open.
{
    echo '10 5 10'
    echo '5 6 7 8 9'
    for i in 0 1 2 3 4; do echo "$i $((i + 5)) 400Gbps 1us 0"; done
    for i in 0 1 2 3 4; do echo "$((i + 5)) $(((i + 1) % 5 + 5)) 100Gbps 1us 0"; done
} >topology.txt
{
    echo 5
    for i in 0 1 2 3 4; do echo "$i $(((i + 2) % 5)) 3 100 20000000 0"; done
} >flow.txt
cat >config.txt <<'END'
TOPOLOGY_FILE topology.txt FLOW_FILE flow.txt CC_MODE 0 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps
L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1 HAS_WIN 0 BUFFER_SIZE 1
END
orrery run --flows -t config.txt 2>&1
echo "status $?"
orrery run --flows -t config.txt --compat ns3 --json 2>/dev/null | tr ',' '\n' | grep -c 'waits for the next one'
ls
