# SPDX-License-Identifier: Apache-2.0
# The same operators take the same time, whoever asks: chip time, stage and run, serve, convert fx.
# Times that are summed are a nanosecond a kernel apart at most.
echo '{"scheduling-policy": "LIFO"}' >sys.json
printf 'topology: [ Switch ]\nnpus_count: [ 1 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >one.yml
time_of() {
    orrery run -q "$@" --json | sed -n 's/.*"simulated_ns": \([0-9]*\).*/\1/p'
}
same() { # what, ns, ns, how many kernels
    apart=$(($2 > $3 ? $2 - $3 : $3 - $2))
    if test "$2" -gt 0 && test "$apart" -le "$4"; then
        echo "$1: the same"
    else
        echo "$1: $2 and $3 ns"
    fi
}
# What `chip time` says of the kernels that a trace names, one after the other.
kernels_of() {
    orrery view -q json "$1" -o nodes.json
    grep -A1 '"name": "kernels"' nodes.json | sed -n 's/.*"stringVal": "\([^"]*\)".*/\1/p' | tr ';' '\n' | sed 's/^ *//' >kernels.txt
    orrery chip time "$2" -q --json --from kernels.txt | sed -n 's/.*, "us": \([0-9.]*\)}$/\1/p' | awk '{ printf "%.0f\n", $1 * 1000 }'
}
orrery stage -q gpt2 --software cuda-graph --layers 2 --vocab 1024 --seq 128 -o step.orr >made.txt
for chip in h200 a100 rtx-pro-6000; do
    same "chip time, and a step on $chip" "$(kernels_of step.orr $chip)" "$(time_of step.orr --hardware $chip)" 200
done
# A long prompt draws so much power that the clock falls: both know.
estimate_of() {
    orrery serve -q llama-3-8b -p "$1" -n 1 -b 4 --phase "$2" --hardware h200 --json -o served.orr |
        sed -n 's/.*"time_ps": \([0-9]*\)[0-9][0-9][0-9],.*/\1/p'
}
for phase in prefill decode; do
    served=$(estimate_of 4096 $phase)
    same "serve, and a run of its $phase" "$served" "$(time_of served.orr --hardware h200)" 1000
done
test "$(kernels_of served.orr h200)" -gt 0 && echo "and it names its kernels"
# A captured step, timed when it is converted and when it runs.
for step in vit_h14 resnet50_b256; do
    orrery convert fx -q "$ORR_ROOT/truth/captures/$step.json.gz" --hardware h200 -o timed.orr >made.txt
    orrery convert fx -q "$ORR_ROOT/truth/captures/$step.json.gz" -o plain.orr >made.txt
    same "convert fx, and a run of $step" "$(time_of timed.orr -s sys.json -t one.yml)" "$(time_of plain.orr --hardware h200 --software cuda-graph)" 2000
done
