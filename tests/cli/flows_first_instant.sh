# SPDX-License-Identifier: Apache-2.0
# The first packets leave at time 0 from any host of a star, also under --compat, whatever the number of its port.  By hand:
# two hops of 1036 bytes and two of 48 at 100 Gb/s, four links of 1 us: 4173.44 ns; in whole nanoseconds 4174.
printf 'CC_MODE 0 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1 TOPOLOGY_FILE star.txt\n' >config.txt
{
    printf '17 1 16\n16\n'
    for host in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do printf '16 %d 100Gbps 1us 0\n' $host; done
} >star.txt
for way in '0 1' '7 3' '14 15'; do
    printf '1\n%s 3 100 1000 0\n' "$way" >flows.txt
    for mode in '' --compat=ns3; do
        orrery run -q --flows=flows.txt -t config.txt $mode --json | tr ',' '\n' | grep '"fct_max'
    done
done | sort | uniq -c | sed 's/^ *//'
