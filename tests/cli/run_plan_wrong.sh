# SPDX-License-Identifier: Apache-2.0
# A plan that does something else, hangs, or needs what is not there: one error that says where.
make() {
    PYTHONDONTWRITEBYTECODE=1 python3 "$ORR_ROOT/tests/golden/plan_inputs.py" "$@"
}
printf 'topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 1}' >sys.json
orrery gen -q all_reduce --ranks 4 -o ar.orr
run() {
    orrery run -q ar.orr -s sys.json -t net.yml --plan "$1" 2>&1
    echo "  status $?"
}
wrong() {
    make "$@" >plan.$3
    run plan.$3
}
wrong ring_all_reduce 4 forget
wrong ring_all_reduce 4 stop
wrong pairs_all_to_all 4 swap
wrong pairs_all_reduce 4 early
wrong put_all_gather 4 deaf
wrong port_all_gather 4 astray
wrong read_all_reduce 4 half
wrong packet_all_reduce 4 order
make switch_all_reduce 4 >switch.json && run switch.json
make ring_all_reduce 4 >ring.xml
try() {
    sed "$1" ring.xml >plan.xml
    cmp -s plan.xml ring.xml && echo "nothing changed: $1"
    run plan.xml
}
try 's/coll="allreduce"/coll="broadcast"/'
try 's/type="rrcs"/type="rrx"/'
try '4s/srcoff="[0-9]*"/srcoff="7"/'
try '4s/cnt="1"/cnt="1" twice="1"/'
try '4s/cnt="1"/cnt="x"/'
try 's/ngpus="4"/ngpus="5"/'
try '0,/send="1"/s//send="0"/'
try '0,/send="1"/s//send="-1"/'
try '$d'
try 's/<gpu id="1"/<gpu id="0"/'
try 's/nchunksperloop="4"/nchunksperloop="1000000"/'
echo '{"name": 1}' >plan.json && run plan.json
echo 'ring' >plan.txt && run plan.txt
run missing.xml
