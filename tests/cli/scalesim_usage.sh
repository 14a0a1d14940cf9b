# SPDX-License-Identifier: Apache-2.0
# What does not fit together is refused with status 2.
printf "[general]\nrun_name = \"demo\"\n[architecture_presets]\nArrayHeight: 8\nArrayWidth: 8\nIfmapSramSz: 1\n" >a.cfg
printf "FilterSramSz: 1\nOfmapSramSz: 1\nDataflow: ws\nBandwidth: 4\n[run_presets]\nInterfaceBandwidth: CALC\n" >>a.cfg
printf "Layer, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n" >net.csv
printf "Conv1, 16, 16, 3, 3, 3, 8, 1,\nFC1, 1, 1, 1, 1, 128, 40, 1,\n" >>net.csv
try() {
    orrery scalesim "$@" 2>&1 | head -n 1
}
try -t net.csv
try -c a.cfg
try -c a.cfg -t net.csv -arch_config=a.cfg
try -c a.cfg -t net.csv --json --csv
try -c a.cfg -t net.csv -o x -p y
try -c a.cfg -t net.csv --array 8
try -c a.cfg -t net.csv --array 8x0
try -c a.cfg -t net.csv --array 8x8x8
try -c a.cfg -t net.csv --bandwidth fast
try -c a.cfg -t net.csv --dataflow rs
try -c a.cfg -t net.csv --compat v4
try -c a.cfg -t net.csv --compat v1 --round-up
try -c a.cfg -t net.csv --compat v1 -i gemm
try -c a.cfg -t net.csv extra
orrery scalesim -t net.csv 2>/dev/null
echo "status $?"
orrery scalesim -c a.cfg -t net.csv -o /dev/null/x
echo "status $?"
