# SPDX-License-Identifier: Apache-2.0
# Runs that can never end, end, and say why: a link that fails for good, packets that nobody sends again, ports that pause
# each other in a cycle.  In flows and in traces.
printf '4 1 3\n3\n3 0 100Gbps 1us 0\n3 1 100Gbps 1us 0\n3 2 100Gbps 1us 0\n' >topology.txt
printf '2\n0 2 3 100 500000 0\n1 0 3 100 500000 0\n' >flow.txt
cat >config.txt <<'END2'
TOPOLOGY_FILE topology.txt FLOW_FILE flow.txt CC_MODE 0 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps
L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1
END2
echo "a link fails for good:"
echo '20us down 3 2' >events.txt
orrery -q run --flows -t config.txt --packet-keys 'LINK_EVENTS_FILE events.txt' 2>&1
echo "status $?"
ls fct.txt 2>/dev/null
echo "a link on which all is lost, and a program that does not try again:"
sed 's/3 2 100Gbps 1us 0/3 2 100Gbps 1us 1/' topology.txt >t && mv t topology.txt
orrery -q run --flows -t config.txt --compat ns3 2>&1
echo "status $?"
echo "five switches in a ring:"
{
    printf '10 5 10\n5 6 7 8 9\n'
    for i in 0 1 2 3 4; do echo "$i $((i + 5)) 100Gbps 1us 0"; done
    for i in 0 1 2 3 4; do echo "$((i + 5)) $(((i + 1) % 5 + 5)) 100Gbps 1us 0"; done
} >topology.txt
{
    echo 5
    for i in 0 1 2 3 4; do echo "$i $(((i + 2) % 5)) 3 100 20000000 0"; done
} >flow.txt
orrery -q run --flows -t config.txt --packet-keys 'HAS_WIN 0 BUFFER_SIZE 1' 2>&1 | sed -n '/^deadlock/,$p'
orrery -q run --flows -t config.txt --packet-keys 'HAS_WIN 0 BUFFER_SIZE 1' --json 2>/dev/null |
    grep -o '"notes":\[[^]]*' | grep -o 'PFC storm: [0-9]* ports'
echo "the same in a trace:"
printf 'num_ranks 5\n' >ring.goal
for i in 0 1 2 3 4; do
    printf 'rank %d {\nl1: send 20000000b to %d tag 1\nl2: recv 20000000b from %d tag 1\n}\n' \
        $i $(((i + 2) % 5)) $(((i + 3) % 5)) >>ring.goal
done
orrery -q run ring.goal --network packet -t config.txt --packet-keys 'HAS_WIN 0 BUFFER_SIZE 1' 2>&1 |
    grep -E 'deadlock|next one|^cause'
echo "hosts that pause each other, as the old program has it:"
printf '2 0 1\n\n0 1 100Gbps 1us 0\n' >topology.txt
printf '2\n0 1 3 100 100000 0\n1 0 3 100 100000 0\n' >flow.txt
orrery -q run --flows -t config.txt --packet-keys 'NIC_TOTAL_PAUSE_TIME 1' --compat ns3 2>&1
printf '3 1 2\n2\n2 0 400Gbps 100ns 0\n2 1 400Gbps 100ns 0\n' >topology.txt
printf '2\n0 1 3 100 5000000 0\n1 0 3 100 5000000 0\n' >flow.txt
orrery -q run --flows -t config.txt --packet-keys 'NIC_TOTAL_PAUSE_TIME 1 HAS_WIN 0 BUFFER_SIZE 1' --compat ns3 2>&1 |
    sed -n '/^deadlock/,$p'
orrery -q run --flows -t config.txt --packet-keys 'NIC_TOTAL_PAUSE_TIME 1 HAS_WIN 0 BUFFER_SIZE 1' | grep -E 'flows done|NIC'
echo "a buffer that counts what a failing link has taken away, as the old program has it:"
printf '5 2 4\n3 4\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n3 4 40Gbps 1us 0\n4 2 100Gbps 1us 0\n' >topology.txt
printf '1\n0 2 3 100 5000000 1.9999\n' >flow.txt
orrery -q run --flows -t config.txt --packet-keys 'HAS_WIN 0 BUFFER_SIZE 1 LINK_DOWN 200 3 4' --compat ns3 2>&1
