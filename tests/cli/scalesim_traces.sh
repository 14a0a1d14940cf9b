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
orrery scalesim -q -c a.cfg -t net.csv --traces -o out
echo "status $?"
ls -d out 2>/dev/null
exit 0
