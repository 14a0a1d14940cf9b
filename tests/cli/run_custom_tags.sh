# SPDX-License-Identifier: Apache-2.0
# A message of a custom collective is not taken for that of a send node with the same tag, ranks and size: rank 0 sends
# one at once and joins the collective after 100 us, so that rank 1, which then computes for 200 us and receives, ends
# after more than 300 us.
printf '{"scheduling-policy": "FIFO", "preferred-dataset-splits": 1, "all-reduce-implementation-custom": ["ar"]}\n' >sys.json
printf 'topology: [Switch]\nnpus_count: [2]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
message() { # ID TYPE PEER-NAME PEER [PARENT]
    printf '{"id":"%s","type":"COMM_%s_NODE","attr":[{"name":"%s","int32Val":%s},' "$1" "$2" "$3" "$4"
    printf '{"name":"comm_size","int64Val":"4096"},{"name":"comm_tag","int32Val":7}]'
    [ $# -lt 5 ] || printf ',"dataDeps":["%s"]' "$5"
    printf '}\n'
}
compute() { # ID US [PARENT]
    printf '{"id":"%s","type":"COMP_NODE","durationMicros":"%s"' "$1" "$2"
    [ $# -lt 3 ] || printf ',"dataDeps":["%s"]' "$3"
    printf '}\n'
}
all_reduce() { # ID [PARENT]
    printf '{"id":"%s","type":"COMM_COLL_NODE","attr":[{"name":"comm_type","int64Val":"0"},' "$1"
    printf '{"name":"comm_size","int64Val":"4096"}]'
    [ $# -lt 2 ] || printf ',"dataDeps":["%s"]' "$2"
    printf '}\n'
}
message 0 SEND comm_dst 1 >program.0.jsonl
message 0 RECV comm_src 0 >program.1.jsonl
orrery convert -q et program -o ar
{ message 1 SEND comm_dst 1; compute 2 100; all_reduce 3 2; } >w.0.jsonl
{ all_reduce 1; compute 2 200 1; message 3 RECV comm_src 0 2; } >w.1.jsonl
orrery run -q w -s sys.json -t net.yml | head -1
# A program whose tags do not agree: they are named as in the program.
message 0 RECV comm_src 0 | sed 's/"int32Val":7/"int32Val":8/' >program.1.jsonl
orrery convert -q et program -o ar
orrery run -q w -s sys.json -t net.yml
