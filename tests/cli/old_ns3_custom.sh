# SPDX-License-Identifier: Apache-2.0
# room: ns3, astra_sim
# A custom collective on the packet network: rank 1 comes late, so its receives end as soon as they are posted, also the
# last of the program.  The folder mix/ is made.
printf '{"scheduling-policy": "FIFO", "preferred-dataset-splits": 1, "local-mem-bw": 50, ' >sys.json
printf '"all-reduce-implementation-custom": ["coll/ring"]}\n' >>sys.json
printf '{"memory-type": "NO_MEMORY_EXPANSION"}\n' >mem.json
printf '{"logical-dims": ["2"]}\n' >logical.json
printf '3 1 2\n2\n2 0 400Gbps 0.0005ms 0\n2 1 400Gbps 0.0005ms 0\n' >topology.txt
cat >config.txt <<'END'
TOPOLOGY_FILE topology.txt FCT_OUTPUT_FILE mix/out/fct.txt PFC_OUTPUT_FILE mix/pfc.txt QLEN_MON_FILE mix/qlen.txt
TRACE_OUTPUT_FILE mix/mix.tr CC_MODE 12 RATE_AI 50Mb/s RATE_HAI 100Mb/s L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1
KMIN_MAP 1 400000000000 800 KMAX_MAP 1 400000000000 3200 PMAX_MAP 1 400000000000 0.2 BUFFER_SIZE 32
END
message() { # ID TYPE PEER-NAME PEER TAG [PARENT]
    printf '{"id":"%s","type":"COMM_%s_NODE","attr":[{"name":"%s","int32Val":%s},' "$1" "$2" "$3" "$4"
    printf '{"name":"comm_size","int64Val":"4096"},{"name":"comm_tag","int32Val":%s}]' "$5"
    [ $# -lt 6 ] || printf ',"dataDeps":["%s"]' "$6"
    printf '}\n'
}
mkdir coll
for tag in 0 1 2 3; do message $tag SEND comm_dst 1 $tag; done >ring.0.jsonl
{ message 0 RECV comm_src 0 0; for tag in 1 2 3; do message $tag RECV comm_src 0 $tag $((tag - 1)); done; } >ring.1.jsonl
orrery convert -q et ring -o coll/ring
for r in 0 1; do
    printf '{"id":"1","type":"COMP_NODE","durationMicros":"%s"}\n' $((r * 20 + 1))
    printf '{"id":"2","type":"COMM_COLL_NODE","dataDeps":["1"],"attr":[{"name":"comm_type","int64Val":"0"},'
    printf '{"name":"comm_size","int64Val":"16384"}]}\n'
done | split -l 2 --numeric-suffixes --additional-suffix=.jsonl -a 1 - w.
AstraSimNetwork --workload-configuration=w --system-configuration=sys.json --network-configuration=config.txt \
    --remote-memory-configuration=mem.json --logical-topology-configuration=logical.json | sed 's/^\[[^]]*\] //'
find mix -type f | sort
