# SPDX-License-Identifier: Apache-2.0
# A table on chips: the same times as `orrery chip time`, an interval, what is outside the measured range, the clock.
printf 'Layer,m,n,k\nfc,4096,8192,4096\n' >one.csv
us_of() { # chip, kernel
    orrery chip time "$1" "$2" --json | sed -n 's/.*"us": \([0-9.]*\), "low.*/\1/p'
}
forward_of() { # what follows the table
    orrery gemm one.csv -n 1 "$@" --json | sed -n '/"forward"/,/time_ps/s/.*"time_ps": \([0-9]*\),/\1/p' | awk '{ printf "%.4f\n", $1 / 1e6 }'
}
for chip in h100 h200 b200 mi300x v100; do
    type=bf16
    test $chip = v100 && type=fp16
    test "$(forward_of -w $chip)" = "$(us_of $chip "gemm $type m=4096 n=8192 k=4096")" && echo "$chip: as chip time"
done
test "$(forward_of -w b200 --dtype nvfp4)" = "$(us_of b200 'gemm nvfp4 m=4096 n=8192 k=4096')" && echo "4 bits"
test "$(forward_of -w h100-sxm)" = "$(forward_of --machine dgx-h100:1 -n 1)" && echo "by alias and by machine"
printf 'like: h100\nkernels: {gemm: {scale: 2}}\n' >own.yml
test "$(forward_of -w own.yml)" = "$(us_of own.yml 'gemm bf16 m=4096 n=8192 k=4096')" && echo "a calibrated chip"
test "$(forward_of)" = "$(forward_of -w h200)" && echo "the default is an H200"
orrery gemm one.csv -n 1 -o one.txt 2>&1 | grep -c '90 % interval'
orrery gemm one.csv -n 1 -w mi300x -o one.txt 2>&1 | grep -A1 '^note'
# The update, whose kernel has a type of its own; cycles are those of the highest clock.
orrery gemm one.csv -n 1 -w h200 -u adam --json | grep -c 'update_low_ps'
orrery gemm one.csv -n 1 -w h200 -t cycles -q | awk 'NR == 3 { print ($3 > 500000) }'
# Under the power cap a step of such products takes longer: the run of the same kernels has it, too.
orrery gemm one.csv -n 1 -w h200 -o one.txt 2>&1 | grep -c 'under the power cap'
orrery gemm one.csv -n 1 -w h200 --csv | awk -F, 'NR == 1 { columns = NF } END { print (NF == columns) }'
