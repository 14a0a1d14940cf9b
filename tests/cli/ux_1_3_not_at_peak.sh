# SPDX-License-Identifier: Apache-2.0
# Computing takes what kernels take, not what the data sheet promises, on every path: by machine, by chip and by a system
# file with peaks; --ideal asks for the peaks.  GPT-2 124M, 8 sequences of 1,024 tokens, as a CUDA graph on one H200:
# measured 18.2 ms (truth/tables/h200_steps.csv).
orrery stage -q gpt2 --vocab 50304 --batch 8 --micro-batch 8 --seq 1024 --software cuda-graph --no-master --no-clipping -o g.orr >/dev/null
printf '{"peak-perf": 989.4, "local-mem-bw": 4800, "roofline-enabled": 1}' >h200.json
printf 'topology: [Switch]\nnpus_count: [1]\nbandwidth: [50]\nlatency: [500]\n' >n1.yml
time_of() {
    orrery -q run g.orr "${@:2}" --json | sed -n 's/.*"simulated_ns": \([0-9]*\).*/\1/p' |
        awk -v what="$1" -v least="${least:-16e6}" -v most="${most:-21e6}" '{print what, ($1 >= least && $1 <= most ? "within bounds" : $1 " ns")}'
}
time_of "chip:" --hardware h200
time_of "system file:" -s h200.json -t n1.yml
least=5e6 most=14e6 time_of "ideal:" -s h200.json -t n1.yml --ideal
orrery -q run g.orr -s h200.json -t n1.yml | grep '^compute: '
orrery -q run g.orr -s h200.json -t n1.yml --ideal | grep '^compute: '
orrery -q run g.orr --hardware h200 | grep '^compute: '
# A chip that nobody has measured: as efficient as its nearest, at its own peaks, so twice the peaks take half the time.
printf '{"peak-perf": 1978.8, "local-mem-bw": 9600, "roofline-enabled": 1}' >twice.json
least=7e6 most=16e6 time_of "twice the peaks:" -s twice.json -t n1.yml
# What serving is estimated with.
orrery -q serve llama-3-8b -p 512 -n 16 | grep -o '^estimated with [^:]*'
orrery -q serve llama-3-8b -p 512 -n 16 --ideal | grep -o '^estimated with [^:]*'
