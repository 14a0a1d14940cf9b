# SPDX-License-Identifier: Apache-2.0
# room: stage, chakra
# Every generator: its set through rank files and back gives the same files and the same run, groups and all.
system() {
    printf '{"scheduling-policy": "LIFO", "collective-optimization": "baseline", "local-mem-bw": 1600, "peak-perf": 900,
 "roofline-enabled": %s, "preferred-dataset-splits": 2, "all-reduce-implementation": ["ring"],
 "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["direct"]}' "$1" >sys.json
}
printf '{"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-latency": 100, "remote-mem-bw": 50,
 "num-nodes": 1, "num-npus-per-node": 4}' >mem.json
net() {
    printf 'topology: [Switch]\nnpus_count: [%s]\nbandwidth: [50]\nlatency: [500]\n' "$1" >net.yml
}
# Names of files, places in them and what is stored and simulated once may differ; nothing else.
simulate() {
    orrery run -q --ideal "$1" -s sys.json -t net.yml -m mem.json --json 2>&1 |
        sed -e '/"path":/d; /"content_hash/d; /"file":/d; /"byte":/d; /"ranks_distinct":/d; /"ranks_simulated":/d; /"events":/d; s/[xypq][.0-9a-z]*: byte [0-9]*/traces/g'
}
through() {
    orrery convert et -q x.orr -o p && orrery convert et -q p -o y.orr && orrery convert et -q y.orr -o q
    for f in p.*; do
        cmp "$f" "q${f#p}"
    done
    simulate x.orr >x.run
    for set in p y.orr; do
        simulate $set >set.run
        cmp x.run set.run
    done
    groups=0
    test -e p.json && groups=$(grep -o '\[' p.json | wc -l)
    finished=$(sed -n 's/.*"simulated_ns": \([0-9]*\),.*/\1 ns/p; s/.*"status": "stalled".*/stalled/p' x.run | head -1)
    echo "$1: $groups groups, ${finished:-$(head -1 x.run)}"
    rm -f p.* q.* x.* y.*
}
net 4
system 0
for pattern in $(orrery gen --list | awk '{print $1}'); do
    orrery gen -q "$pattern" --ranks 4 -o x.orr 2>/dev/null || { net 2; orrery gen -q "$pattern" -o x.orr; }
    through "gen $pattern"
done
net 4
printf 'HYBRID_DATA_MODEL\n2\nfc0 -1 10 ALLGATHER 64 20 REDUCESCATTER 128 30 ALLREDUCE 256 5\nfc1 -1 11 NONE 0 21 REDUCESCATTER 128 31 NONE 0 5\n' >mlp.txt
orrery convert text -q mlp.txt --npus 4 --dims 1 -o x.orr
through "convert text"
printf 'num_ranks 2\nrank 0 {\na: calc 100\nb: send 8b to 1 tag 1\nb requires a\n}\nrank 1 {\nc: recv 8b from 0 tag 1\n}\n' >m.goal
net 2
orrery convert goal -q m.goal -o x.orr
through "convert goal"
printf 'digraph g {\nnode0 [label="{device_id=0|a|Forward|COMP_NODE|simulated_run_time=0.001}"];\nnode1 [label="{device_id=4|c|Comm|COMM_SEND_RECV_NODE|src_device_id=0|dst_device_id=1|comm_size=64|run_time=1}"];\nnode2 [label="{device_id=1|b|Backward|COMP_NODE|simulated_run_time=0.002}"];\nnode0 -> node1 -> node2;\n}\n' >tasks.dot
orrery convert flexflow -q tasks.dot -o x.orr
through "convert flexflow"
net 4
mkdir job && python3 "$ORR_ROOT/tests/golden/torch_inputs.py" four job && orrery link -q --ranks job -o x.orr
through "link"
system 1
net 8
orrery stage gpt2 -q --dp 2 --tp 2 --pp 2 --seq 64 --batch 4 --micro-batch 1 -o x.orr >stage.txt
through "stage"
orrery stage -q --compat --model-type gpt --dp 2 --tp 2 --pp 2 --layers 4 -o x.orr >stage.txt
through "stage --compat"
orrery convert fx -q "$ORR_ROOT/tests/capture/graphs/tp.json.gz" -o x.orr
through "convert fx"
net 4
orrery serve gpt2 -q --tp 2 --dp 2 -p 64 -n 2 -o x.orr >serve.txt
through "serve"
# A group file is found in a folder and by --ranks' own numbers; another JSON file of that name is no group file.
mkdir d && orrery serve gpt2 -q --tp 2 --dp 2 -p 64 -n 2 -o x.orr >serve.txt && orrery convert et x.orr -o d/p && ls d
simulate d | grep simulated_ns
echo '{"1": [0, 9]}' >d/p.json
simulate d
echo '{"name": 1}' >d/p.json
simulate d
