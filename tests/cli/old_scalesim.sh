# SPDX-License-Identifier: Apache-2.0
# room: scale_sim
# SCALE-Sim's three generations as their documents start them: the same files and, but for progress bars, the same
# lines.  Flags tell v1 from the others, the configuration v2 from v3.
root=$(dirname "$(command -v orrery)")
mkdir configs topologies layouts
printf '[general]\nrun_name = "t4"\n[architecture_presets]\nArrayHeight: 4\nArrayWidth: 4\nIfmapSramSz: 1\n' >configs/eyeriss.cfg
printf 'FilterSramSz: 1\nOfmapSramSz: 1\nIfmapOffset: 0\nFilterOffset: 10000000\nOfmapOffset: 20000000\n' >>configs/eyeriss.cfg
printf 'Dataflow: ws\n' >>configs/eyeriss.cfg
sed 's/"//g; s/SramSz/SramSzkB/' configs/eyeriss.cfg >configs/v2.cfg
printf 'Bandwidth: 10\n[run_presets]\nInterfaceBandwidth: CALC\n' >>configs/v2.cfg
sed 's/CALC/USER/' configs/v2.cfg >configs/v3.cfg
printf 'UseRamulatorTrace: False\n[layout]\nIfmapCustomLayout: False\nFilterCustomLayout: False\n' >>configs/v3.cfg
printf 'IfmapSRAMBankBandwidth: 10\nIfmapSRAMBankNum: 10\nIfmapSRAMBankPort: 2\n' >>configs/v3.cfg
printf 'FilterSRAMBankBandwidth: 10\nFilterSRAMBankNum: 10\nFilterSRAMBankPort: 2\n' >>configs/v3.cfg
printf '[sparsity]\nSparsitySupport : true\nSparseRep : csr\nOptimizedMapping : false\n' >>configs/v3.cfg
printf 'Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n' >topologies/yolo.csv
printf 'Conv1, 8, 8, 3, 3, 2, 6, 1,\n' >>topologies/yolo.csv
sed 's/1,$/1, 2:4,/' topologies/yolo.csv >topologies/sparse.csv
printf 'Layer, M, N, K,\nfc, 8, 8, 8,\n' >topologies/mnk.csv
cp "$root/scale.py" .
echo "-- v1"
python3 scale.py -arch_config=configs/eyeriss.cfg -network=topologies/yolo.csv
(cd outputs/t4 && find . -type f | sort)
orrery scalesim -arch_config=configs/eyeriss.cfg -network=topologies/yolo.csv --compat v1 --traces -o v1 -q >/dev/null
diff -r v1 outputs/t4
echo "-- v2"
python3 scale.py -c configs/v2.cfg -t topologies/yolo.csv -p logs
cat logs/t4/COMPUTE_REPORT.csv
PYTHONPATH=${PYTHONPATH-}:$root python3 "$root/scalesim/scale.py" -c configs/v2.cfg -t topologies/mnk.csv -i gemm -p logs | grep -A 2 Running
echo "-- v3"
PYTHONPATH=$root python3 -m scalesim.scale -c configs/v3.cfg -t topologies/sparse.csv -p logs
(cd logs/t4 && find . -type f | sort)
cat logs/t4/SPARSE_REPORT.csv
scale.py -c configs/v3.cfg -t topologies/mnk.csv -i gemm -s N -q >gemm.txt
diff logs/t4/COMPUTE_REPORT.csv results/t4/COMPUTE_REPORT.csv | tail -n 1
echo "-- broken"
scale.py -c configs/none.cfg -t topologies/yolo.csv
echo "status $?"
scale.py -c configs/v2.cfg -t topologies/mnk.csv -p none
echo "status $?"
scale.py
echo "status $?"
ls
