# SPDX-License-Identifier: Apache-2.0
# room: scale_sim
# Each damaged configuration or table gives one error that says where and what was expected, and no output.
printf "[general]\nrun_name = \"demo\"\n[architecture_presets]\nArrayHeight: 8\nArrayWidth: 8\nIfmapSramSz: 1\n" >a.cfg
printf "FilterSramSz: 1\nOfmapSramSz: 1\nDataflow: ws\nBandwidth: 4\n[run_presets]\nInterfaceBandwidth: CALC\n" >>a.cfg
printf "Layer, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n" >net.csv
printf "Conv1, 16, 16, 3, 3, 3, 8, 1,\nFC1, 1, 1, 1, 1, 128, 40, 1,\n" >>net.csv
for file in "$ORR_ROOT"/tests/broken/scalesim_cfg/*; do
    cp "$file" .
    orrery scalesim -c "${file##*/}" -t net.csv -o out 2>&1
    [ $? = 3 ] || echo "$file: status is not 3"
done
for file in "$ORR_ROOT"/tests/broken/scalesim_csv/*; do
    cp "$file" .
    orrery scalesim -c a.cfg -t "${file##*/}" -o out 2>&1
    [ $? = 3 ] || echo "$file: status is not 3"
done
sed 's/InterfaceBandwidth.*//' a.cfg >v1.cfg
orrery scalesim -c v1.cfg -t net.csv --compat v2 -o out
echo "status $?"
printf '[architecture_presets]\nArrayHeight: 1\nArrayWidth: 1\nDataflow: os\nIfmapSramSz: 1\nFilterSramSz: 1\n' >one.cfg
printf 'OfmapSramSz: 1\n[run_presets]\nInterfaceBandwidth: CALC\n' >>one.cfg
printf 'h\none,1,1,1,1,1,1,1,\n' >one.csv
orrery scalesim -c one.cfg -t one.csv --compat v2 -o out
echo "status $?"
orrery scalesim -c missing.cfg -t net.csv
echo "status $?"
ls -d out 2>/dev/null
exit 0
