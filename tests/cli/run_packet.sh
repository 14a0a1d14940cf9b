# SPDX-License-Identifier: Apache-2.0
# A ring all-reduce of 16 KiB over 8 ranks, one switch, 400 Gb/s and 500 ns a link: 113,944 ns is what is published for
# the old program with its sample configuration.
orrery -q gen all_reduce --ranks 8 --comm-size 16384 -o ar.orr
cat >sys.json <<'END'
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
 "all-reduce-implementation": ["ring"], "collective-optimization": "localBWAware", "local-mem-bw": 1600}
END
{
    printf '9 1 8\n8\n'
    for i in 0 1 2 3 4 5 6 7; do echo "8 $i 400Gbps 0.0005ms 0"; done
} >topology.txt
cat >config.txt <<'END'
TOPOLOGY_FILE topology.txt CC_MODE 0 RATE_AI 50Mb/s RATE_HAI 100Mb/s L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1
GLOBAL_T 0 VAR_WIN 1 BUFFER_SIZE 32
KMIN_MAP 1 400000000000 800 KMAX_MAP 1 400000000000 3200 PMAX_MAP 1 400000000000 0.2
END
orrery run ar.orr -s sys.json -t config.txt --network packet --compat ns3
wc -l <fct.txt
echo '{"logical-dims": ["4", "2"]}' >two.json
orrery run ar.orr -s sys.json -t config.txt --network packet --logical two.json 2>&1 | head -n 1
echo '{"logical-dims": ["16"]}' >many.json
orrery run ar.orr -s sys.json -t config.txt --network packet --logical many.json 2>&1
echo '{"logical-dims": ["many"]}' >words.json
orrery run ar.orr -s sys.json -t config.txt --network packet --logical words.json 2>&1
# without the key there is one rank, whatever traces and hosts there are
echo '{}' >one.json
echo '{"memory-type": "NO_MEMORY_EXPANSION"}' >memory.json
orrery -q gen one_comp_node -o one
AstraSimNetwork --workload-configuration=one --system-configuration=sys.json --network-configuration=config.txt \
    --remote-memory-configuration=memory.json --logical-topology-configuration=one.json | grep -o 'There are.*\|sys.* finished'
printf 'generate: {type: leaf-spine, ranks: 8, spines: 2, ranks_per_leaf: 4, bandwidth: 400Gb/s, latency: 500ns}' >ls.yml
orrery run ar.orr -s sys.json -t ls.yml --compare graph,packet
orrery run ar.orr -s sys.json -t ls.yml --compat ns3 2>&1
orrery run ar.orr -s sys.json -t ls.yml --compare graph,pigeons 2>&1
