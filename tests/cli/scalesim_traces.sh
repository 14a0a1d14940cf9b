# SPDX-License-Identifier: Apache-2.0
# room: scale_sim
# Every access of small layers: the sums are those of the files that SCALE-Sim v1 (bb76184, Python 3.11) wrote for them.
printf 'h\nConv1, 16, 16, 3, 3, 3, 8, 1,\nPt, 9, 9, 1, 1, 1, 30, 1,\nnodiv, 10, 11, 2, 3, 3, 7, 3,\n' >net.csv
for flow in os ws is; do
    printf '[architecture_presets]\nArrayHeight: 12\nArrayWidth: 5\nDataflow: %s\n' $flow >a.cfg
    printf 'IfmapSramSz: 1\nFilterSramSz: 1\nOfmapSramSz: 1\n' >>a.cfg
    orrery scalesim -q -c a.cfg -t net.csv --compat v1 --traces -o $flow >text
    (cd $flow && cat *.csv layer_wise/* | sha256sum && ls layer_wise | wc -l)
done
printf 'again,16,16,3,3,3,8,1,\nagain,1,1,1,1,3,8,1,\n' >>net.csv
orrery scalesim -q -c a.cfg -t net.csv --compat v1 --traces -o out >text
echo "status $?"
# SCALE-Sim v2 (22f88b1, numpy 1.24, traces asked for) wrote the files of this sum; v3's are in golden/test_scalesim_v3.
printf '[architecture_presets]\nArrayHeight: 4\nArrayWidth: 3\nIfmapSramSzkB: 1\nFilterSramSzkB: 1\nOfmapSramSzkB: 1\n' >v2.cfg
printf 'IfmapOffset: 0\nFilterOffset: 10000000\nOfmapOffset: 20000000\nBandwidth: 4\nDataflow: ws\nMemoryBanks: 1\n' >>v2.cfg
printf '[general]\nrun_name = r\n[run_presets]\nInterfaceBandwidth: USER\n' >>v2.cfg
printf 'h\nConv1, 9, 9, 3, 3, 4, 8, 2, 2,\n' >v2.csv
orrery scalesim -q -c v2.cfg -t v2.csv --compat v2 --traces -o v2 >text
(cd v2 && cat layer0/* | sha256sum && ls layer0)
orrery scalesim -q -c a.cfg -t net.csv --traces -o out
echo "status $?"
ls -d out 2>/dev/null
exit 0
