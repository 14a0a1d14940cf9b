# SPDX-License-Identifier: Apache-2.0
# What layers cost, for programs: figures worked out in gemm_text.sh.  Memory: 2 bytes a nanosecond.
printf 'rows: 4\ncolumns: 4\ndataflow: os\nclock: 1GHz\nmemory_bandwidth: 2GB/s\noverhead: 10ns\nname: tiny\n' >tiny.yml
printf 'Layer,m,n,k\nfc1,16,4,4\nfc2,15,8,4\n' >net.csv
orrery gemm net.csv -n 2 -w tiny.yml --json | sed 's/"program": .*/"program": .../'
orrery gemm net.csv -n 2 -w tiny.yml --csv
orrery gemm net.csv -n 2 -w tiny.yml --json -o kept.txt | head -n 3
cat kept.txt
