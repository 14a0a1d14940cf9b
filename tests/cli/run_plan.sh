# SPDX-License-Identifier: Apache-2.0
# Plans of MSCCL and MSCCL++ on every network; a ring by plan takes exactly as long as the built-in ring.
make() {
    PYTHONDONTWRITEBYTECODE=1 python3 "$ORR_ROOT/tests/golden/plan_inputs.py" "$@"
}
printf 'topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 2, "active-chunks-per-dimension": 2,
 "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
 "all-to-all-implementation": ["direct"]}' >sys.json
for kind in all_reduce all_gather reduce_scatter all_to_all; do
    orrery gen -q $kind --ranks 4 --comm-size 1048576 -o $kind.orr
done
time_of() {
    orrery run "$@" -q -s sys.json -t net.yml | sed -n 's/.*(\(.*\) ns)/\1/p'
}
for network in unaware aware graph packet; do
    for kind in all_reduce all_gather reduce_scatter all_to_all; do
        echo "$network $kind: $(time_of $kind.orr -n $network) ns built in"
    done
    for plan in ring_all_reduce ring_reduce_scatter ring_all_gather pairs_all_to_all pairs_all_reduce; do
        make $plan 4 >$plan.xml
        echo "$network $plan: $(time_of ${plan#*_}.orr -n $network --plan $plan.xml)"
    done
    for plan in put_all_gather port_all_gather read_all_reduce packet_all_reduce pipeline_all_gather; do
        make $plan 4 >$plan.json
        echo "$network $plan: $(time_of ${plan#*_}.orr -n $network --plan $plan.json)"
    done
done
# By the system file; several plans; one that fits no collective.
sed 's/"all-reduce-implementation": \["ring"\]/"all-reduce-implementation-custom": ["ring_all_reduce.xml"]/' sys.json >custom.json
orrery run -q all_reduce.orr -s custom.json -t net.yml | head -1
make ring_all_reduce 8 >ring8.xml
orrery run all_reduce.orr -s sys.json -t net.yml --plan ring8.xml,ring_all_reduce.xml | head -1
sed 's/ring_all_reduce/ring8/' custom.json >custom8.json
orrery run -q all_reduce.orr -s custom8.json -t net.yml
echo "status $?"
sed 's/ring_all_reduce.xml/ring_all_gather.xml/' custom.json >wrong.json
orrery run -q all_reduce.orr -s wrong.json -t net.yml
echo "status $?"
# On a machine its steps are bare messages: 14 of 128 KiB over NVLink take 4 us and a latency each, not a kernel of NCCL each.
orrery gen -q all_reduce --ranks 8 --comm-size 1048576 -o eight.orr
orrery run -q eight.orr --machine dgx-h100:1 --plan ring8.xml | head -1
# In a group of four among eight ranks.
printf 'topology: [Switch]\nnpus_count: [8]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
orrery stage gpt2 -q --dp 2 --tp 4 --seq 64 --batch 2 -o tp.orr >stage.txt
sed 's/"local-mem-bw"/"roofline-enabled": 1, "peak-perf": 900, "local-mem-bw"/' sys.json >roofline.json
orrery run -q --ideal tp.orr -s roofline.json -t net.yml | head -1
orrery run --ideal tp.orr -s roofline.json -t net.yml --plan ring_all_gather.xml,ring_reduce_scatter.xml | head -1
