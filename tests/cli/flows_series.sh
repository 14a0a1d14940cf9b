# SPDX-License-Identifier: Apache-2.0
# Two flows of 500 packets into one host: its link is busy from 1.08288 us on, for 1000 times 82.88 ns, so it is done at
# 83.96 us; intervals of 20 us.
printf '4 1 3\n3\n3 0 100Gbps 1us 0\n3 1 100Gbps 1us 0\n3 2 100Gbps 1us 0\n' >topology.txt
printf '2\n0 2 3 100 500000 0\n1 2 3 100 500000 0\n' >flow.txt
cat >config.txt <<'END2'
TOPOLOGY_FILE topology.txt FLOW_FILE flow.txt CC_MODE 0 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps
L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1 HAS_WIN 0
END2
orrery -q run --flows -t config.txt --series s.csv --series-every 20us --series-what links --series-watch 3.3 \
    --packet-keys 'SERIES_TOP 0' >/dev/null
cat s.csv
orrery -q run --flows -t config.txt --series s.json --series-every 20us --series-what flows >/dev/null
tr '{' '\n' <s.json
printf 'generate: {type: leaf-spine, ranks: 4, ranks_per_leaf: 2, spines: 1, bandwidth: 100Gb/s, latency: 500ns}' >net.yml
printf '{"scheduling-policy":"LIFO","local-mem-bw":1600,"preferred-dataset-splits":1,"all-reduce-implementation":["ring"]}' >sys.json
orrery -q gen all_reduce --ranks 4 --comm-size 1048576 -o ar.orr
orrery -q run ar.orr -s sys.json -t net.yml --network packet --series t.csv | tail -n 1
cut -d, -f1 t.csv | sort | uniq -c | awk '{ print $2 }'
orrery run ar.orr -s sys.json -t net.yml --series t.csv 2>&1
orrery run --flows -t config.txt --series-what flows 2>&1
orrery run --flows -t config.txt --series t.csv --series-what pigeons 2>&1
orrery run --flows -t config.txt --series t.csv --series-every 0us 2>&1
orrery run --flows -t config.txt --series t.csv --series-watch 3.9 2>&1
orrery run --flows -t config.txt --packet-keys 'COLOUR red' 2>&1
