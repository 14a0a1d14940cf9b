# SPDX-License-Identifier: Apache-2.0
# room: scale_sim
# Options that are wrong, or do not go together: words and status 2.
try() {
    words=$(orrery gemm "$@" 2>&1)
    echo "  status $?: ${words%%$'\n'*}"
}
printf 'Layer,m,n,k\na,8,8,8\n' >t.csv
printf '[architecture_presets]\nArrayHeight: 4\nArrayWidth: 4\nIfmapSramSz: 1\nFilterSramSz: 1\nOfmapSramSz: 1\nDataflow: ws\n' >c.cfg
try
try t.csv -e dlrm
try -e dlmr
try t.csv -w tpu-v9
try t.csv -w something-else
try t.csv -w none.yml
try t.csv -w h10
try t.csv --design h300
try t.csv --design something-else
try t.csv --design h200 -w h100
try t.csv --design h200 --dtype fp8
try t.csv --dtype bf17
try t.csv -w a100 --dtype fp8
try t.csv --datatype-size 3
try t.csv --machine dgx-h100 -w h100
try --print
try -w h200 --print
try t.csv -a 8x8
try t.csv --dataflow ws
try t.csv -w h100 --sweep
try t.csv -p FOO
try t.csv -n 6 --packages 4
try t.csv -n 0
try t.csv --design h200 -a 128
try t.csv --design h200 -a 0x4
try t.csv -u lamb
try t.csv --design h200 --sweep=8
try t.csv --design h200 --sweep=3-9
try t.csv --json --csv
try t.csv --json -o -
try t.csv --form set
try t.csv -o x.orr --times ns
try t.csv --compat v1
try t.csv --config c.cfg -w h100
try t.csv --config c.cfg --times us
try t.csv --keep-intermediate
try t.csv --run-name mine
try t.csv --passes 3
try t.csv --dims 2 -o t.txt
try t.csv --design h200 --sweep -o t.txt
try t.csv --design h200 --sweep --form text
try none.csv
gen_astrasim_workload_input --mnk t.csv
echo "  status $?"
ls
