# SPDX-License-Identifier: Apache-2.0
# Arrays of other sizes: at most 80 columns, colour only when asked for, the same figures in each form.
printf 'Layer,m,n,k\na,64,32,16\n' >t.csv
printf 'rows: 4\ncolumns: 4\nclock: 1GHz\nname: tiny\n' >tiny.yml
orrery gemm t.csv -n 1 -w tiny.yml --sweep=4-16
orrery gemm t.csv -n 1 -w tiny.yml --sweep=4-16 --csv | head -n 4
orrery gemm t.csv -n 1 -w tiny.yml --sweep=4-16 --json | grep -c '"cycles"'
orrery gemm t.csv -n 1 -w tiny.yml --sweep=4-4 --color=always | grep -c "$(printf '\033')"
orrery gemm -e resnet50 -n 16 --design h200 -s | awk 'length > 80'
orrery gemm -e resnet50 -n 16 --design h200 --sweep=1-65536 | awk 'length > 80'
