# SPDX-License-Identifier: Apache-2.0
# room: scale_sim
# The files of SCALE-Sim v3 (1d62b68), byte for byte as it writes them: dense, sparse in both ways, with a layout.
# What it cannot do is refused with a message; without --compat its files give our own figures.
cat >a.cfg <<'END'
[general]
run_name = demo
[architecture_presets]
ArrayHeight: 8
ArrayWidth: 8
IfmapSramSzkB: 1
FilterSramSzkB: 1
OfmapSramSzkB: 1
IfmapOffset: 0
FilterOffset: 10000000
OfmapOffset: 20000000
Bandwidth : 5
Dataflow : ws
ReadRequestBuffer: 32
WriteRequestBuffer: 32
[layout]
IfmapCustomLayout: False
IfmapSRAMBankBandwidth: 8
IfmapSRAMBankNum: 2
IfmapSRAMBankPort: 1
FilterCustomLayout: False
FilterSRAMBankBandwidth: 8
FilterSRAMBankNum: 4
FilterSRAMBankPort: 2
[sparsity]
SparsitySupport : false
SparseRep : ellpack_block
OptimizedMapping : false
BlockSize : 4
RandomNumberGeneratorSeed : 40
[run_presets]
InterfaceBandwidth: USER
UseRamulatorTrace: False
END
printf 'Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides, Sparsity,\n' >net.csv
printf 'Conv1, 16, 16, 3, 3, 3, 12, 1, 2:4,\nFC1, 1, 1, 1, 1, 128, 40, 1,\n' >>net.csv
printf 'Layer, M, N, K, Sparsity,\nQKT, 24, 24, 16, 1:4,\n' >gemm.csv
printf 'Layer,factors and orders,\nall, 2, 2, 1, 1, 2, 4, 0, 1, 2, 4, 5, 3, 3, 2, 1, 0, 4, 5, 6, 7,\n' >layout.csv
show() {
    orrery scalesim "$@" --compat v3 -o out -q >/dev/null && cat out/*
    rm -rf out
}
orrery scalesim -c a.cfg -t net.csv -l layout.csv --compat v3 -q
ls results/demo
show -c a.cfg -t net.csv
show -c a.cfg -t gemm.csv -i gemm
sed 's/SparsitySupport.*/SparsitySupport : true/' a.cfg >sparse.cfg
show -c sparse.cfg -t net.csv
sed 's/OptimizedMapping.*/OptimizedMapping : true/' sparse.cfg >packed.cfg
show -c packed.cfg -t net.csv
sed 's/CustomLayout.*/CustomLayout: True/' a.cfg >banks.cfg
show -c banks.cfg -t gemm.csv -i gemm -l layout.csv
try() {
    orrery scalesim "$@" --compat v3 -o none 2>&1
    [ $? -eq 3 ] || echo "status is not 3"
}
try -c banks.cfg -t net.csv
sed 's/IfmapOffset.*/IfmapOffset: 1000/' banks.cfg >far.cfg
try -c far.cfg -t net.csv -l layout.csv
sed 's/all, 2/all, 9/' layout.csv >wide.csv
try -c banks.cfg -t net.csv -l wide.csv
sed 's/ 6, 7,/ 6, 7/' layout.csv >short.csv
try -c banks.cfg -t net.csv -l short.csv
sed 's/ 2, 2,.*/ 2, x,/' layout.csv >word.csv
try -c banks.cfg -t net.csv -l word.csv
sed 's/IfmapSRAMBankNum.*/IfmapSRAMBankNum: 3/' a.cfg >odd.cfg
try -c odd.cfg -t net.csv
sed 's/Ramulator.*/RamulatorTrace: True/' a.cfg >ramulator.cfg
try -c ramulator.cfg -t net.csv
sed '/^\[layout/,/^FilterSRAMBankPort/d' a.cfg >v2.cfg
try -c v2.cfg -t net.csv
sed 's/BlockSize.*/BlockSize : 9/' packed.cfg >block.cfg
try -c block.cfg -t net.csv
sed 's/: ws/: os/' packed.cfg >os.cfg
try -c os.cfg -t net.csv
sed 's/SparseRep.*/SparseRep : coo/' sparse.cfg >coo.cfg
try -c coo.cfg -t net.csv
sed 's/1, 2:4,/1, 1,/' net.csv >strides.csv
try -c a.cfg -t strides.csv
ls -d none 2>/dev/null
orrery scalesim -c sparse.cfg -t net.csv
