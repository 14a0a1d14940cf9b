# SPDX-License-Identifier: Apache-2.0
# room: chakra, astra_sim
# As ASTRA-sim's documents of 2023 type it: the samples by the names of that time, then one of them simulated; and what a
# wrong prefix is told.
mkdir -p chakra/et_generator && cd chakra/et_generator
et_generator --num_npus 64 --num_dims 1
ls | wc -l
ls *.0.et
cd ../..
printf '{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, ' >sys.json
printf '"preferred-dataset-splits": 4, "all-reduce-implementation": ["ring"], "local-mem-bw": 50}\n' >>sys.json
printf 'topology: [ Ring ]\nnpus_count: [ 64 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >net.yml
printf '{"memory-type": "NO_MEMORY_EXPANSION"}\n' >mem.json
astra() {
    AstraSim_Analytical_Congestion_Unaware --workload-configuration="$1" --system-configuration=sys.json \
        --network-configuration=net.yml --remote-memory-configuration=mem.json
}
astra ./chakra/et_generator/oneCommNodeAllReduce | grep -c 'finished'
astra ./chakra/et_generator/oneCommNodeAllReduce | grep 'sys\[63\]' | sed 's/^\[[^]]*\] //'
astra ./chakra/et_generator/one_comm_coll_node_allreduce | grep -c 'finished'
for t in twoCompNodesDependent commNodesSingleSendSingleRecv.64 parallelismComparisonPipelineParallel threeLayerDataParallel; do
    echo "$t: $(astra ./chakra/et_generator/$t | grep -c 'finished')"
done
astra ./chakra/et_generator/oneCommNodeAllreduces 2>&1
echo "status $?"
orrery run ./chakra/et_generator/three_layer_parallel -s sys.json -t net.yml 2>&1
echo "status $?"
mkdir empty
orrery run empty/any -s sys.json -t net.yml 2>&1
