# SPDX-License-Identifier: Apache-2.0
# room: astra_sim, chakra, stage, drawing
# ASTRA-sim's tutorials as typed: those of version 1.0 (2022, 2023), which read tutorial_result.csv, and those of 2024, which
# start Chakra's tools and STAGE as Python modules.  The times of one collective are those that version 1.0 printed.
root=$(dirname "$(command -v orrery)")
export PYTHONPATH=$root PYTHONDONTWRITEBYTECODE=1
lists() { printf '"units-count": [%s], "links-count": [%s], "link-latency": [%s], "link-bandwidth": [%s]}\n' "$@"; }
(printf '{"dimensions-count": 1, "topologies-per-dim": ["Ring"], ' && lists 4 2 250 25) >ring.json
(printf '{"dimensions-count": 1, "topologies-per-dim": ["Switch"], ' && lists 4 3 250 25) >switch.json
(printf '{"dimensions-count": 2, "topologies-per-dim": ["Switch", "FullyConnected"], ' && lists '4, 3' '1, 2' '10, 10' '50, 25') >two.json
cat >ring.txt <<'EOF'
scheduling-policy: LIFO
endpoint-delay: 10
active-chunks-per-dimension: 1
preferred-dataset-splits: 4
boost-mode: 1
all-reduce-implementation: ring
all-gather-implementation: ring
reduce-scatter-implementation: ring
all-to-all-implementation: direct
collective-optimization: localBWAware
EOF
sed 's/: ring/: halvingDoubling/' ring.txt >switch.txt
sed 's/: ring/: halvingDoubling_direct/; s/: direct/: direct_direct/' ring.txt >two.txt
(cat two.txt && printf 'intra-dimension-scheduling: SCF\ninter-dimension-scheduling: themis\n') >themis.txt
printf 'MICRO\n1\nallreduce -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 3000000 7\n' >micro.txt
printf 'DATA\n2\na -1 3000 NONE 0 2000 NONE 0 1000 ALLREDUCE 400000 10\nb -1 300 NONE 0 200 NONE 0 100 ALLREDUCE 40000 10\n' >data.txt
echo "-- 1.0: sizes"
mkdir result
row=0
for size in 1 2 64; do
    AnalyticalAstra --run-name="${size}" --network-configuration=ring.json --system-configuration=ring.txt \
        --workload-configuration=micro.txt --comm-scale="${size}" --path=result/ --total-stat-rows=3 --stat-row=$row >out || exit 1
    row=$((row + 1))
done
cat result/tutorial_result.csv
echo "-- 1.0: networks"
AnalyticalAstra --run-name=Switch --network-configuration=switch.json --system-configuration=switch.txt \
    --workload-configuration=micro.txt --path=result/ --total-stat-rows=3 --stat-row=0 >out
AnalyticalAstra --run-name=Themis --network-configuration=two.json --system-configuration=themis.txt --comm-scale=16 \
    --workload-configuration=micro.txt --path=result/ --total-stat-rows=3 --stat-row=2 >out
cat result/tutorial_result.csv
echo "-- 1.0: a training step, times of the table in ns"
AnalyticalAstra --run-name="Exercise 3" --network-configuration=ring.json --system-configuration=ring.txt --compute-scale=0.5 \
    --workload-configuration=data.txt --path=result/ | grep 'sys\[0\] finished' | sed 's/.*sys/sys/'
cat result/tutorial_result.csv
echo "-- 1.0: congestion"
printf 'topology: Switch\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >congestion.yml
AstraCongestion --run-name=congestion --network-configuration=congestion.yml --system-configuration=ring.txt \
    --workload-configuration=micro.txt --path=result/ --total-stat-rows 2 --stat-row 1 | grep 'sys\[0\] finished' | sed 's/.*sys/sys/'
cat result/tutorial_result.csv
AnalyticalAstra --run-name=x --network-configuration=ring.json --system-configuration=ring.txt --workload-configuration=micro.txt \
    --path=none/ >out
echo "exit $?"
echo "-- 2024: modules"
python3 -m chakra.et_converter.et_converter --input_type="Text" --input_filename="data.txt" --output_filename="text" \
    --num_npus=4 --num_dims=1 --num_passes=1
python3 -m chakra.et_visualizer.et_visualizer --input_filename=text.0.et --output_filename=text.0.dot && head -c 8 text.0.dot && echo
python3 -m chakra.et_generator.et_generator --num_npus 2 --num_dims 1 && ls one_comm_coll_node_allreduce.*
python3 "$ORR_ROOT/tests/golden/torch_inputs.py" four . || exit 1
python3 -m chakra.trace_link.trace_link --chakra-host-trace=host0.json --chakra-device-trace=device0.json --output-file=etplus_0.json
python3 -m chakra.et_converter.et_converter --input_type="PyTorch" --input_filename="etplus_0.json" --output_filename="et.0.et" --num_dims=1
python3 -m chakra.src.jsonizer.jsonizer --input_filename et.0.et --output_filename et.0.json && grep -c '"id"' et.0.json
python3 "$root/symbolic_tensor_graph/main.py" --output_dir generated/ --output_name workload.%d.et --comm_group_file comm_group.json \
    --dp 2 --tp 2 --pp 2 --weight_sharded 0
ls generated
