# SPDX-License-Identifier: Apache-2.0
# A run that stands still says who waits for whom, and why: on stderr, in the JSON object, and under an old name.
printf '{"scheduling-policy": "LIFO", "preferred-dataset-splits": 1, "local-mem-bw": 50, ' >sys.json
printf '"all-reduce-implementation": ["ring"]}\n' >>sys.json
printf 'topology: [ Switch ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >net.yml
printf '{"memory-type": "NO_MEMORY_EXPANSION"}\n' >mem.json

# message ID NAME TYPE PEER BYTES TAG [DEPENDENCY]
message() {
    printf '{"id":"%s","name":"%s","type":"COMM_%s_NODE",' "$1" "$2" "$3"
    [ $# -lt 7 ] || printf '"dataDeps":["%s"],' "$7"
    [ "$3" = SEND ] && peer=comm_dst || peer=comm_src
    printf '"attr":[{"name":"%s","int32Val":%s},{"name":"comm_size","int64Val":"%s"},' $peer "$4" "$5"
    printf '{"name":"comm_tag","int32Val":%s}]}\n' "$6"
}
reduce() {
    printf '{"id":"%s","name":"grads","type":"COMM_COLL_NODE","attr":[{"name":"comm_type","int64Val":"0"},' "$1"
    printf '{"name":"comm_size","int64Val":"65536"}]'
    [ $# -lt 2 ] || printf ',"dataDeps":["%s"]' "$2"
    printf '}\n'
}

mkdir size cycle
# Rank 3 expects another size, so it never comes to the all-reduce the others are in.
for r in 0 1 2; do reduce 2 >size/w.$r.jsonl; done
message 3 activations SEND 3 4096 7 >>size/w.0.jsonl
{ message 1 activations RECV 0 4095 7; reduce 2 1; } >size/w.3.jsonl
echo "--- size"
orrery run size/w -s sys.json -t net.yml 2>&1
echo "status $?"
orrery run size/w -s sys.json -t net.yml --json 2>/dev/null | sed -n '/"stall": {/,/^  }/p'
AstraSim_Analytical_Congestion_Unaware --workload-configuration=size/w --system-configuration=sys.json \
    --network-configuration=net.yml --remote-memory-configuration=mem.json 2>&1 >/dev/null | head -2

# Each rank receives from the next before it sends to the one before.
for r in 0 1 2 3; do
    message 1 from_next RECV $(((r + 1) % 4)) 64 0
    message 2 to_last SEND $(((r + 3) % 4)) 64 0 1
done | split -l 2 --numeric-suffixes --additional-suffix=.jsonl -a 1 - cycle/w.
echo "--- cycle"
orrery run cycle/w -s sys.json -t net.yml 2>&1
echo "status $?"
