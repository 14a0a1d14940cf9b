# SPDX-License-Identifier: Apache-2.0
# A ring all-reduce as a chain of htsim's triggers sends what the collective sends: of 1 MiB over 8 ranks, each rank 14
# times 128 KiB to the next one.  On htsim's tree, and on the same tree as a file of the ns-3 back end.
orrery -q gen all_reduce --ranks 8 --comm-size 1048576 -o ring
echo '{"scheduling-policy": "LIFO", "local-mem-bw": 100, "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]}' >sys.json
echo 'CC_MODE 0 ENABLE_QCN 0 RATE_AI 50Mb/s RATE_HAI 100Mb/s L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1 PFC_OUTPUT_FILE pfc.txt FCT_OUTPUT_FILE fct.txt' >config.txt
orrery -q gen topology leaf-spine --hosts 8 --hosts-per-leaf 4 --spines 2 --nic 400Gbps --latency 500ns -o tree.topo
orrery -q gen topology --from tree.topo -o tree.txt
awk 'BEGIN {
    ranks = 8; steps = 2 * (ranks - 1)
    printf "Nodes %d\nConnections %d\nTriggers %d\n", ranks, ranks * steps, ranks * (steps - 1)
    for (step = 0; step < steps; step++)
        for (r = 0; r < ranks; r++) {
            # what rank r received in the step before starts what it sends in this one
            when = step ? "trigger " ((step - 1) * ranks + (r + ranks - 1) % ranks + 1) : "start 0"
            tell = step < steps - 1 ? " recv_done_trigger " (step * ranks + r + 1) : ""
            printf "%d->%d id %d %s size 131072%s\n", r, (r + 1) % ranks, step * ranks + r + 1, when, tell
        }
    for (i = 1; i <= ranks * (steps - 1); i++)
        printf "trigger id %d oneshot\n", i
}' >ring.cm
flows() {
    awk '{print $1, $2, $5}' fct.txt | sort | uniq -c
}
orrery -q run ring -s sys.json -t tree.topo -n packet --packet-config config.txt >/dev/null && flows >collective
for tree in tree.topo tree.txt; do
    orrery -q run --flows ring.cm -t $tree --packet-config config.txt >/dev/null && flows >chain
    cmp collective chain && echo "$tree: the same flows"
done
cat chain
