# SPDX-License-Identifier: Apache-2.0
# room: scale_sim
# The old flags and, in outputs/RUN_NAME, the files of SCALE-Sim v1 (bb76184), byte for byte as it writes them.
printf "[general]\nrun_name = \"demo\"\n[architecture_presets]\nArrayHeight: 8\nArrayWidth: 8\nIfmapSramSz: 1\n" >a.cfg
printf "FilterSramSz: 1\nOfmapSramSz: 1\nDataflow: ws\nBandwidth: 4\n[run_presets]\nInterfaceBandwidth: CALC\n" >>a.cfg
printf "Layer, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n" >net.csv
printf "Conv1, 16, 16, 3, 3, 3, 8, 1,\nFC1, 1, 1, 1, 1, 128, 40, 1,\n" >>net.csv
printf 'Conv2 , 14, 14, 3, 3, 8, 16, 2,\nlost,1,2,3\n' >>net.csv
orrery scalesim -arch_config=a.cfg -network=net.csv --compat v1
for file in cycles avg_bw max_bw detail; do
    cat outputs/demo/net_$file.csv
done
