# SPDX-License-Identifier: Apache-2.0
# A small table on an array of 4 x 4 that keeps its outputs, a cycle a nanosecond.  A fold of 4 x 4 outputs takes k + 6
# cycles, and one more is behind the last: of fc1, shared by two, 8 rows are left, so forward 2 * (4 + 6) + 1 = 21.
printf 'rows: 4\ncolumns: 4\ndataflow: os\nclock: 1GHz\nname: tiny\n' >tiny.yml
cat >net.csv <<'END'
# blank lines and remarks are skipped

Layer,m,n,k
fc1,16,4,4

fc2,16,8,4
END
orrery gemm net.csv --npus 2 --hardware tiny.yml --times cycles
echo "-- model parallel, in nanoseconds, quietly, into a file"
orrery gemm net.csv -n 2 -w tiny.yml -t ns -p MODEL -q -o out.txt
cat out.txt
echo "-- from standard input, three copies, an update of 7 for all"
orrery gemm - -n 1 -w tiny.yml -t cycles --repeat 3 -u 7 -q <net.csv
echo "-- each layer in its own way"
printf 'k,n,m,name,strategy\n4,4,16,fc1,DATA\n4,8,16,fc2,MODEL\n' | orrery gemm - -n 2 -w tiny.yml -t cycles -q
echo "-- another array"
orrery gemm net.csv -n 2 -w tiny.yml -a 8x4 --dataflow ws -t cycles -q
