# SPDX-License-Identifier: Apache-2.0
# Machines that are not there, files that are wrong: one message each, with its place; nothing is written.
run() {
    orrery "$@" >out 2>err
    echo "status $?: $(head -n 1 err)"
    [ ! -s out ] || echo "something was printed"
}
run machine show dgx-h1000
run machine show dgx-h100:0
run machine show nothing
run machine show nothing.yml
run machine show
run machine list dgx-h100
run machine export dgx-h100
run machine frobnicate
for file in "$ORR_ROOT"/tests/broken/machine_file/*; do
    cp "$file" .
    run machine check "${file##*/}"
done
printf 'chip: unheard-of\n' >chip.yml
run machine check chip.yml
: >file
run machine export dgx-h100 -o file/below
