# SPDX-License-Identifier: Apache-2.0
# room: astra_sim, ns3, chakra
# Names that scripts call: what ns-3 makes of AstraSimNetwork, ASTRA-sim on htsim, the first names of the analytical
# programs with the files of version 1.0, and et_visualizer.
printf '{"scheduling-policy": "LIFO", "preferred-dataset-splits": 4, "local-mem-bw": 50, ' >sys.json
printf '"all-reduce-implementation": ["ring"]}\n' >>sys.json
printf '{"memory-type": "NO_MEMORY_EXPANSION"}\n' >mem.json
printf '{"logical-dims": ["4"]}\n' >logical.json
printf 'topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >net.yml
orrery gen -q all_reduce --ranks 4 -o all_reduce
told() { sed -n 's/^\[[^]]*\] \[workload\] \[info\] \(sys\[0\] .*\)/\1/p'; }

echo "--- ns-3"
printf '5 1 4\n4\n4 0 400Gbps 500ns 0\n4 1 400Gbps 500ns 0\n4 2 400Gbps 500ns 0\n4 3 400Gbps 500ns 0\n' >topology.txt
printf 'TOPOLOGY_FILE topology.txt FCT_OUTPUT_FILE mix/fct.txt PFC_OUTPUT_FILE mix/pfc.txt CC_MODE 12 ' >config.txt
printf 'L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1 RATE_AI 50Mb/s RATE_HAI 100Mb/s BUFFER_SIZE 32 ' >>config.txt
printf 'KMAX_MAP 1 400000000000 3200 KMIN_MAP 1 400000000000 800 PMAX_MAP 1 400000000000 0.2\n' >>config.txt
mkdir bin
for name in ns3.42-AstraSimNetwork-debug ns3.36.1-AstraSimNetwork-optimized; do
    ln -s "$ORR_BUILD/bin/orrery" bin/$name
done
for name in AstraSimNetwork ns3.42-AstraSimNetwork-default bin/ns3.42-AstraSimNetwork-debug \
    bin/ns3.36.1-AstraSimNetwork-optimized; do
    $name --workload-configuration=all_reduce --system-configuration=sys.json --network-configuration=config.txt \
        --remote-memory-configuration=mem.json --logical-topology-configuration=logical.json | told
done

echo "--- htsim"
cat >tree.topo <<'END'
Nodes 4
Tiers 2
Podsize 4

Tier 0
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000

Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Downlink_Latency_ns 1000
END
htsim() {
    AstraSim_HTSim --workload-configuration=all_reduce --system-configuration=sys.json \
        --remote-memory-configuration=mem.json --network-configuration=net.yml "$@"
}
htsim --htsim_opts -topo tree.topo | told
orrery run -q all_reduce -s sys.json -n packet -t tree.topo --packet-keys 'CC_MODE 11 TRANSPORT selective ENABLE_PFC 0 TRIMMING 1' --json | grep '"simulated_ns"'
htsim 2>&1
echo "status $?"

echo "--- version 1.0"
cat >torus_sys.txt <<'END'
scheduling-policy: LIFO 
endpoint-delay: 1
active-chunks-per-dimension: 1
preferred-dataset-splits: 4
boost-mode: 0
all-reduce-implementation: ring_ring
all-gather-implementation: ring_ring
reduce-scatter-implementation: ring_ring
all-to-all-implementation: ring_ring
collective-optimization: localBWAware
END
cat >torus.json <<'END'
{
  "topology-name": "Hierarchical",
  "topologies-per-dim": ["Ring", "Switch"],
  "dimension-type": ["N", "P"],
  "dimensions-count": 2,
  "units-count": [4, 2],
  "links-count": [2, 1],
  "link-latency": [1, 500],
  "link-bandwidth": [32, 12.5],
  "nic-latency": [0, 20],
  "router-latency": [0, 10],
  "hbm-latency": [500, 500],
  "hbm-bandwidth": [370, 370],
  "hbm-scale": [0, 1]
}
END
printf 'MICRO\n1\nconv1 -1 5 NONE 0 5 NONE 0 5  ALLREDUCE 1048576 5\n' >micro.txt
printf 'HYBRID_TRANSFORMER model_parallel_NPU_group: 4\n1\nq -1 5 ALLGATHER 4096 5 ALLREDUCE 4096 5 ALLREDUCE 4096 5\n' \
    >transformer.txt
mkdir results
early() {
    AnalyticalAstra --network-configuration=torus.json --system-configuration=torus_sys.txt \
        --workload-configuration="$1" --path=results/ --run-name=sample --num-passes=2 --comm-scale=50 \
        --total-stat-rows=1 --stat-row=0
}
early micro.txt | told
early transformer.txt | told
# The same in today's words: 64 and 12.5 GB/s, 1 ns and (2 * 500 + 2 * 20 + 10) / 2 ns.
printf 'topology: [ Ring, Switch ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 64, 12.5 ]\nlatency: [ 1, 525 ]\n' >torus.yml
orrery convert -q text micro.txt --dims 4x2 --passes 2 -o micro
orrery run -q micro -s torus_sys.txt -t torus.yml -n unaware --json | grep '"simulated_ns"'
orrery run -q micro -s torus_sys.txt -t torus.json -n unaware --json | grep '"simulated_ns"'
sed 's/ring_ring/ring/; s/endpoint-delay: 1/endpoint-delay: 10/' torus_sys.txt >ring_sys.txt
AstraCongestion --network-configuration=net.yml --system-configuration=ring_sys.txt \
    --workload-configuration=all_reduce | told
for line in 'hbm-scale": [3, 1]' 'links-count": [2, 0]' 'nic-latency": [5, 20]' 'units-count": [4]'; do
    sed "s/\"${line%%\"*}\": .*/\"$line,/; s/\[3, 1\],/[3, 1]/" torus.json >bad.json
    orrery run micro -s torus_sys.txt -t bad.json 2>&1
done
for line in 'speed: 1' 'endpoint-delay' 'endpoint-delay: fast' 'all-reduce-implementation: ring_tree'; do
    { cat torus_sys.txt; echo "$line"; } >bad.txt
    orrery run micro -s bad.txt -t torus.json 2>&1
done

echo "--- converter"
chakra_converter Text --input transformer.txt --output t --num-npus 4 --num-passes 1 2>/dev/null
orrery info t.0.et | grep -E 'COMM_COLL|generator'
et_visualizer --input_filename all_reduce.0.et --output_filename graph.graphml
grep -c '<node' graph.graphml
