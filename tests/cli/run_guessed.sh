# SPDX-License-Identifier: Apache-2.0
# Kernels that no measured one is like are named in the result, and widen its interval.
width_of() {
    orrery run "$1" --hardware h200 --json | tr -d ' \n' |
        sed -n 's/.*"simulated_ns":\([0-9]*\).*"interval_ns":\[\([0-9]*\),\([0-9]*\)\].*/\3 \2 \1/p' | awk '{ printf "%d\n", 100 * ($1 - $2) / $3 }'
}
orrery stage -q gpt2 --software cuda-graph --layers 2 --vocab 1024 --seq 128 -o usual.orr >made.txt
orrery stage -q llama-3.1-8b --software cuda-graph --layers 1 --seq 512 --batch 1 -o large.orr >made.txt
orrery run usual.orr --hardware h200 | grep -c "unlike any measured one"
orrery run large.orr --hardware h200 | grep -o "of compute time is in kernels unlike any measured one"
orrery run large.orr --hardware h200 | grep -o "mostly: optimizer bf16 m=1268789248"
test "$(width_of large.orr)" -gt "$(($(width_of usual.orr) * 3 / 2))" && echo "the interval is wider by more than half"
