# SPDX-License-Identifier: Apache-2.0
# room: scale_sim
# The old flags and, in LOGDIR/RUN_NAME, the files of SCALE-Sim v2 (22f88b1), byte for byte as it writes them.
printf "[general]\nrun_name = \"demo\"\n[architecture_presets]\nArrayHeight: 8\nArrayWidth: 8\nIfmapSramSz: 1\n" >a.cfg
printf "FilterSramSz: 1\nOfmapSramSz: 1\nDataflow: ws\nBandwidth: 4\n[run_presets]\nInterfaceBandwidth: CALC\n" >>a.cfg
printf "Layer, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n" >net.csv
printf "Conv1, 16, 16, 3, 3, 3, 8, 1,\nFC1, 1, 1, 1, 1, 128, 40, 1,\n" >>net.csv
sed 's/"//g' a.cfg >b.cfg
orrery scalesim -c b.cfg -t net.csv -p log --compat v2
cat log/demo/COMPUTE_REPORT.csv log/demo/BANDWIDTH_REPORT.csv log/demo/DETAILED_ACCESS_REPORT.csv
sed 's/CALC/USER/' b.cfg >c.cfg
orrery scalesim -c c.cfg -t net.csv -o user --compat v2 -q
cat user/COMPUTE_REPORT.csv user/BANDWIDTH_REPORT.csv user/DETAILED_ACCESS_REPORT.csv
