# SPDX-License-Identifier: Apache-2.0
# A custom collective: of two messages that can start at once the one with the lower id goes first, wherever it stands in
# its file.  10 us of computation wait for it, after 1 us for each message.
printf 'topology: [Switch]\nnpus_count: [2]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy": "FIFO", "preferred-dataset-splits": 1, "local-mem-bw": 1600,
 "all-reduce-implementation-custom": ["coll/ring"]}' >sys.json
message() { # ID TYPE PEER-NAME PEER
    printf '{"id":"%s","type":"COMM_%s_NODE","attr":[{"name":"%s","int32Val":%s},' "$1" "$2" "$3" "$4"
    printf '{"name":"comm_size","int64Val":"50000"},{"name":"comm_tag","int32Val":%s}]}\n' "$1"
}
{ message 3 RECV comm_src 0; message 20 RECV comm_src 0; } >ring.1.jsonl
printf '{"id":"30","type":"COMP_NODE","durationMicros":"10","dataDeps":["3"]}\n' >>ring.1.jsonl
orrery gen -q all_reduce --ranks 2 --comm-size 100000 -o step.orr
for order in '3 20' '20 3'; do
    for id in $order; do message "$id" SEND comm_dst 1; done >ring.0.jsonl
    rm -rf coll
    mkdir coll
    orrery convert -q et ring -o coll/ring
    echo "in the file $order:$(orrery run step.orr -q -n aware -s sys.json -t net.yml | sed -n 's/.*(\(.*\) ns)/ \1 ns/p')"
done
