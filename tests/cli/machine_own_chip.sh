# SPDX-License-Identifier: Apache-2.0
# A machine's chip may be a file: of a calibrated chip, which run, plan and serve use as with --hardware, or of a design, whose
# peaks count. Another chip than that of the base has its own peaks, memory, power and architecture.
printf 'like: h100\nkernels:\n  gemm: {scale: 1.5, low: 0.95, high: 1.05, rows: 20}\n' >mine.yml
printf 'base: hgx-h200\nchip: mine.yml\n' >machine.yml
step_of() {
    orrery run -q "$@" | sed -n 's/^step //p'
}
same() {
    if test -n "$2" && test "$2" = "$3"; then
        echo "$1: the same"
    else
        echo "$1: $2 and $3"
    fi
}
orrery stage -q llama-3-8b --layers 2 --dp 8 --zero 3 --batch 8 -o step.orr >made.txt
want=$(step_of step.orr --machine hgx-h200 --hardware mine.yml)
same 'run' "$(step_of step.orr --machine machine.yml)" "$want"
same 'run, changed in the name' "$(step_of step.orr --machine hgx-h200,chip=mine.yml)" "$want"
test "$(step_of step.orr --machine hgx-h200 --hardware h100)" = "$want" || echo 'unlike the chip that it is like'
orrery run -q step.orr --machine machine.yml | sed -n 's/.*compute: \([^;]*\);.*/\1/p'
served() {
    orrery serve -q llama-3-8b -b 8 -n 4 "$@" | sed -n '/estimated/,/first/p'
}
same 'serve' "$(served --machine machine.yml)" "$(served --machine hgx-h200 --hardware mine.yml)"
orrery plan -q llama-3-8b --machine machine.yml:1 --batch 8 --fix tp=1,pp=1,cp=1,zero=3,micro-batch=1 --top 1 --csv plans.csv >plans.txt
orrery stage -q llama-3-8b --dp 8 --zero 3 --batch 8 --sync-every-micro-batch -o whole.orr >made.txt
same 'plan' "$(sed -n 's/^ *1 *\([0-9.]* m*s\) .*/\1/p' plans.txt)" "$(step_of whole.orr --machine machine.yml | sed 's/ (.*//')"
printf 'base: hgx-h200\nchip: b200\n' >other.yml
printf 'name: b200\nchip: b200\narchitecture: blackwell\ndevices: 8\nmemory: 180GB\nscale_up: {bandwidth: 450GB/s, latency: 500ns, reduces: true}\n' >whole.yml
same 'peaks of another chip' "$(step_of step.orr --machine other.yml --ideal)" "$(step_of step.orr --machine whole.yml --ideal)"
orrery machine show other.yml | sed -n 's/^chip *//p'
printf 'name: own\narrays: 528\nrows: 32\ncolumns: 16\ndataflow: os\nclock: 1GHz\nmemory_bandwidth: 2TB/s\n' >design.yml
printf 'base: hgx-h200\nchip: design.yml\n' >designed.yml
orrery run -q step.orr --machine designed.yml | grep -o 'of [0-9.]* TFLOP/s'
printf 'base: hgx-h200\nchip: no.yml\n' >none.yml
orrery run -q step.orr --machine none.yml
echo "status $?"
# Another name of the base's chip is no other chip.
for pair in dgx-h100,h100-sxm hgx-h200,h200-sxm; do
    orrery machine show "${pair%,*}" | grep '^chip' >own.txt
    orrery machine show "${pair%,*},chip=${pair#*,}" | grep '^chip' | sed "s/${pair#*,}/$(echo "${pair#*,}" | cut -d- -f1)/" >alias.txt
    cmp -s own.txt alias.txt && echo "${pair#*,}: the same chip" || cat own.txt alias.txt
done
# Power follows the chip, unless it is given: of a GB200 NVL72 120 kW for 72.
for machine in dgx-h100 dgx-h100,chip=gb200 dgx-h100,chip=h200 dgx-h100,watts=9000,chip=gb200; do
    echo "$machine: $(orrery machine show "$machine" | grep '^power')"
done
