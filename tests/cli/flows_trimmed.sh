# SPDX-License-Identifier: Apache-2.0
# 16 hosts send 100 packets each to one, over switches that never pause: what finds no room is cut to its header and
# sent again at once.  1600 packets of 82.88 ns are 132.6 us; no timer is needed.
{
    printf '18 1 17\n17\n'
    for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do echo "17 $i 100Gbps 1us 0"; done
} >topology.txt
{
    echo 16
    for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo "$i 16 3 100 100000 0"; done
} >flow.txt
cat >config.txt <<'END2'
TOPOLOGY_FILE topology.txt FLOW_FILE flow.txt RATE_AI 1Gbps RATE_HAI 1Gbps FCT_OUTPUT_FILE fct.txt PFC_OUTPUT_FILE pfc.txt L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1
CC_MODE 11 TRANSPORT selective ENABLE_PFC 0 QUEUE_LIMIT 52000 TRIMMING 1 GLOBAL_T 0
KMIN_MAP 1 100000000000 10 KMAX_MAP 1 100000000000 40 PMAX_MAP 1 100000000000 1
END2
orrery run --flows -t config.txt | grep -E 'flows done|timeouts|dropped|NACKs|retransmitted|trimmed' >table.txt
cat table.txt
grep -c . fct.txt
orrery run --flows -t config.txt --json | tr ',' '\n' | sed -n 's/"finished_at_ps"://p' |
    awk '{ print ($1 >= 132608000 && $1 < 1.15 * 132608000) ? "near the ideal" : "far from the ideal: " $1 }'
orrery run --flows -t config.txt --compat ns3 2>&1
orrery run --flows -t config.txt --packet-keys 'QUEUE_LIMIT 1035' 2>&1
orrery run --flows -t config.txt --packet-keys 'QUEUE_LIMIT 1036' | grep -E 'flows done|timeouts'
