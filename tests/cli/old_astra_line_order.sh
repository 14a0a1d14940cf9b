# SPDX-License-Identifier: Apache-2.0
# room: astra_sim
# The lines "GPU time" and "Comm time" come in the order of the reference's hash tables: first the class of the node that
# a walk of its table of started nodes meets first.  With fewer than 13 nodes of different remainder that is the one that
# started last; the table grows with the 14th, and what shares a place stands together.
printf '{"scheduling-policy": "LIFO", "endpoint-delay": 10, "preferred-dataset-splits": 1, "local-mem-bw": 50, ' >sys.json
printf '"all-reduce-implementation": ["ring"]}\n' >>sys.json
printf 'topology: [ Ring ]\nnpus_count: [ 2 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >net.yml
printf '{"memory-type": "NO_MEMORY_EXPANSION"}\n' >mem.json
# chain ID:KIND...: nodes in a row, c computes, r reduces.
chain() {
    last=
    for node; do
        id=${node%:*}
        printf '{"id":"%s",' "$id"
        [ -z "$last" ] || printf '"dataDeps":["%s"],' "$last"
        case $node in
            *:c) printf '"type":"COMP_NODE","durationMicros":"5"}\n' ;;
            *:r) printf '"type":"COMM_COLL_NODE","attr":[{"name":"comm_type","int64Val":"0"},{"name":"comm_size","int64Val":"4096"}]}\n' ;;
        esac
        last=$id
    done
}
order() {
    for r in 0 1; do chain "$@" >w.$r.jsonl; done
    echo "$*:" $(AstraSim_Analytical_Congestion_Unaware --workload-configuration=w --system-configuration=sys.json \
        --network-configuration=net.yml --remote-memory-configuration=mem.json |
        sed -n 's/.*sys\[0\], \(GPU\|Comm\) time.*/\1/p')
}
order 1:c 2:r
order 1:r 2:c
order 1:c 2:r 3:c
order 0:c 13:r 1:r       # 0 and 13 share a place of 13: 13 stands before 0
order 0:c 13:r
order 13:c 0:r
order 0:c 1:r 2:r 3:r 4:r 5:r 6:r 7:r 8:r 9:r 10:r 11:r 12:r
order 0:c 1:r 2:r 3:r 4:r 5:r 6:r 7:r 8:r 9:r 10:r 11:r 12:r 13:r
order 0:r 1:c 2:c 3:c 4:c 5:c 6:c 7:c 8:c 9:c 10:c 11:c 12:c 13:r
