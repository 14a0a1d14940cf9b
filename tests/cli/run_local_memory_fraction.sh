# SPDX-License-Identifier: Apache-2.0
# room: astra_sim
# Sizes of tensors with a fraction, as STAGE writes them; the trace of memory goes to a folder that is made.
printf '{"scheduling-policy": "LIFO", "preferred-dataset-splits": 1, "track-local-mem": 1, ' >sys.json
printf '"local-mem-trace-filename": "traces/memory/rank"}\n' >>sys.json
printf 'topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >net.yml
printf '{"memory-type": "NO_MEMORY_EXPANSION"}\n' >mem.json
node() { # ID SIZE
    printf '{"id":"%s","type":"COMP_NODE","durationMicros":"5","attr":[{"name":"inputs","stringList":' "$1"
    printf '{"values":["x","%s"]}},{"name":"outputs","stringList":{"values":["y%s","1024"]}}]}\n' "$2" "$1"
}
old() {
    AstraSim_Analytical_Congestion_Unaware --workload-configuration=w --system-configuration=sys.json \
        --network-configuration=net.yml --remote-memory-configuration=mem.json 2>&1 | grep -E 'peak|tracked' | sed 's/^\[2[^]]*\] //'
}
try() { # SIZE
    echo "--- $1"
    for r in 0 1; do node 1 "$1" >w.$r.jsonl; done
    orrery run -q w -s sys.json -t net.yml --json 2>&1 | grep -E 'peak_memory|tracked' | head -1
    old
}
try 230686720
try 230686720.0
try 230686720.75
try 230686720B
try .5
try 230686720.
ls traces/memory
