# SPDX-License-Identifier: Apache-2.0
# Cycles, use and memory of each layer; a bandwidth adds stalls; a line may be a GEMM; equal inputs give equal bytes.
printf "[general]\nrun_name = \"demo\"\n[architecture_presets]\nArrayHeight: 8\nArrayWidth: 8\nIfmapSramSz: 1\n" >a.cfg
printf "FilterSramSz: 1\nOfmapSramSz: 1\nDataflow: ws\nBandwidth: 4\n[run_presets]\nInterfaceBandwidth: CALC\n" >>a.cfg
printf "Layer, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n" >net.csv
printf "Conv1, 16, 16, 3, 3, 3, 8, 1,\nFC1, 1, 1, 1, 1, 128, 40, 1,\n" >>net.csv
orrery scalesim -c a.cfg -t net.csv
orrery scalesim -c a.cfg -t net.csv --bandwidth 4 --dataflow os --array 16x4
printf 'Layer,M,N,K\nqkv,64,96,32\n' >gemm.csv
orrery scalesim --config=a.cfg --topology=gemm.csv -i gemm --dataflow is
orrery scalesim -c a.cfg -t net.csv --json >one.json
orrery scalesim -c a.cfg -t net.csv --json >two.json
cmp one.json two.json
