# SPDX-License-Identifier: Apache-2.0
# Each damaged table or hardware file gives one error that says where and what was expected, and no output.
cp "$ORR_ROOT"/tests/broken/shapes/* .
for file in *.csv; do
    orrery gemm "$file" -n 4 -o out.txt -q 2>&1
    [ $? = 3 ] || echo "$file: status is not 3"
done
printf 'Layer,m,n,k\nL0,2,4,4\n' >small.csv
orrery gemm small.csv -n 4 -o out.txt
echo "status $?"
orrery gemm small.csv -n 8 -p MODEL -o out.orr
echo "status $?"
cp "$ORR_ROOT"/tests/broken/hardware/* .
for file in *.yml; do
    orrery gemm -e dlrm --hardware "$file" -o out.txt -q 2>&1
    [ $? = 3 ] || echo "$file: status is not 3"
done
ls out* 2>/dev/null
exit 0
