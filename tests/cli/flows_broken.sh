# SPDX-License-Identifier: Apache-2.0
# Damaged files of the packet network: one message each, with its place, and nothing is written.
cat >good.txt <<'END'
TOPOLOGY_FILE topology.txt
FLOW_FILE flow.txt
CC_MODE 0
ENABLE_QCN 0
RATE_AI 50Mb/s
RATE_HAI 100Mb/s
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
END
printf '4 1 3\n3\n3 0 100Gbps 1us 0\n3 1 100Gbps 1us 0\n3 2 100Gbps 1us 0\n' >good_topology.txt
printf '1\n0 1 3 100 1000 0\n' >flow.txt
cp good_topology.txt topology.txt
run() {
    orrery run --flows -t "$1" 2>&1
    [ $? = 3 ] || echo "$2: status is not 3"
    [ ! -e fct.txt ] || echo "$2: fct.txt was written"
}
for file in "$ORR_ROOT"/tests/broken/packet_config/*; do
    cp "$file" .
    run "${file##*/}" "${file##*/}"
done
orrery run --flows -t kmin_above_kmax.txt --compat ns3 2>&1 >report.txt | grep KMIN # no error there, but told
rm -f fct.txt pfc.txt
for file in "$ORR_ROOT"/tests/broken/packet_files/topology_*; do
    cp "$file" topology.txt
    printf '%s: ' "${file##*/topology_}"
    run good.txt "${file##*/}"
done
cp good_topology.txt topology.txt
for file in "$ORR_ROOT"/tests/broken/packet_files/flows_*; do
    cp "$file" flow.txt
    printf '%s: ' "${file##*/flows_}"
    run good.txt "${file##*/}"
done
printf '1\n0 1 3 100 1000 0\n' >flow.txt
cp good.txt traced.txt
echo TRACE_FILE nodes.txt TRACE_OUTPUT_FILE trace.bin >>traced.txt
for file in "$ORR_ROOT"/tests/broken/packet_files/traced_*; do
    cp "$file" nodes.txt
    printf '%s: ' "${file##*/traced_}"
    run traced.txt "${file##*/}"
done
# thresholds for 100 Gb/s alone, and the second link has another speed
sed 's/ENABLE_QCN 0/KMIN_MAP 1 100000000000 1 KMAX_MAP 1 100000000000 2 PMAX_MAP 1 100000000000 1/' good.txt >marks.txt
sed 's/3 1 100Gbps/3 1 40Gbps/' good_topology.txt >topology.txt
run marks.txt marks.txt
orrery run --flows -t marks.txt --compat ns3 2>&1 >report.txt | grep KMIN # thresholds of 0 there, and told
rm -f fct.txt pfc.txt
printf '3 0 2\n\n0 1 100Gbps 1us 0\n1 2 100Gbps 1us 0\n' >topology.txt
printf '1\n0 2 3 100 1000 0\n' >flow.txt
run good.txt line
printf '1\n0 1 3 100 1000 0\n' >flow.txt
# 100 Gb/s times 4.16 us are 52,000 bytes: no chunk of 64,000 is ever complete
cp good_topology.txt topology.txt
sed 's/L2_CHUNK_SIZE 4000/L2_BACK_TO_ZERO 1 L2_CHUNK_SIZE 64000/' good.txt >chunks.txt
printf '1\n0 1 3 100 100000 0\n' >flow.txt
run chunks.txt chunks.txt
printf '1\n0 1 3 100 1000 0\n' >flow.txt
for key in FORWARDING_HOSTS\ 1 WIRE_OVERHEAD\ 24 LINK_EVENTS_FILE\ events.txt TRIMMING\ 1; do
    orrery run --flows -t good.txt --packet-keys "$key" --compat ns3 2>&1 | grep -c 'cannot be used with --compat'
done
echo LINK_EVENTS_FILE events.txt >>good.txt
for file in "$ORR_ROOT"/tests/broken/packet_files/events_*; do
    cp "$file" events.txt
    printf '%s: ' "${file##*/events_}"
    run good.txt "${file##*/}"
done
# not broken: a mark before the text and ends of lines of another system
for file in topology.txt flow.txt events.txt config.txt; do
    case $file in
    topology.txt) cat good_topology.txt ;;
    flow.txt) printf '1\n0 1 3 100 1000 0\n' ;;
    events.txt) printf '1us down 3 2\n2us up 3 2\n' ;;
    *) cat good.txt ;;
    esac | { printf '\357\273\277' && sed 's/$/\r/'; } >marked.txt
    mv marked.txt $file
done
orrery run -q --flows -t config.txt | grep 'flows done'
