# SPDX-License-Identifier: Apache-2.0
# One JSON object with every figure; one CSV line a layer; -o writes both.
printf "[general]\nrun_name = \"demo\"\n[architecture_presets]\nArrayHeight: 8\nArrayWidth: 8\nIfmapSramSz: 1\n" >a.cfg
printf "FilterSramSz: 1\nOfmapSramSz: 1\nDataflow: ws\nBandwidth: 4\n[run_presets]\nInterfaceBandwidth: CALC\n" >>a.cfg
printf "Layer, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n" >net.csv
printf "Conv1, 16, 16, 3, 3, 3, 8, 1,\nFC1, 1, 1, 1, 1, 128, 40, 1,\n" >>net.csv
orrery scalesim -c a.cfg -t net.csv --json
orrery scalesim -c a.cfg -t net.csv --csv
orrery scalesim -q -c a.cfg -t net.csv -o out >text
orrery scalesim -c a.cfg -t net.csv --json | cmp - out/layers.json
orrery scalesim -c a.cfg -t net.csv --csv | cmp - out/layers.csv
ls out
