# SPDX-License-Identifier: Apache-2.0
# How a run ends that cannot be finished, and what it says, depends neither on a report nor on threads.
cat >config.txt <<'END2'
TOPOLOGY_FILE topology.txt FLOW_FILE flow.txt CC_MODE 0 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps
L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1
END2
compare() {
    orrery -q run --flows -t config.txt --json "$@" >one 2>&1
    echo "status $?"
    for more in "--threads 2" "--report page.html" "--threads 2 --report page.html"; do
        orrery -q run --flows -t config.txt --json "$@" $more >other 2>&1
        cmp one other || diff one other | head -4
    done
    grep -o '[0-9] of [0-9] flows will never be done' one
}
# The timers of host 1 are the first that look after a millisecond of silence.
echo "a link fails for good:"
printf '4 1 3\n3\n3 0 100Gbps 1us 0\n3 1 100Gbps 1us 0\n3 2 100Gbps 1us 0\n' >topology.txt
printf '2\n0 2 3 100 500000 0\n1 0 3 100 500000 0\n' >flow.txt
echo '20us down 3 2' >events.txt
compare --packet-keys 'LINK_EVENTS_FILE events.txt'
echo "nothing is left to happen:"
compare --compat ns3 --packet-keys 'ERROR_RATE_PER_LINK 1'
# The flow that came first is told of, though hosts 0 and 1 are in the first lane.
echo "two flows for which the last repair gives no way:"
printf '6 2 5\n4 5\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 5 100Gbps 1us 0\n3 5 100Gbps 1us 0\n4 5 100Gbps 1us 0\n' >topology.txt
printf '2\n3 0 3 100 500 0.000002\n1 2 3 100 500 0.000002\n' >flow.txt
printf '0us down 1 4\n0us down 3 5\n1us down 4 5\n3us up 4 5\n' >events.txt
compare --packet-keys 'LINK_EVENTS_FILE events.txt'
grep -o 'from host . to host .' one
echo "a flow that has no way when it starts, while others run:"
printf '3\n1 2 3 100 500000 0\n2 3 3 100 500000 0\n0 3 3 100 500 0.00002\n' >flow.txt
echo '5us down 0 4' >events.txt
compare --packet-keys 'LINK_EVENTS_FILE events.txt'
grep -o 'from host . to host .' one
