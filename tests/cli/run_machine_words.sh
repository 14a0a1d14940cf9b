# SPDX-License-Identifier: Apache-2.0
# A result says on which machine it was made, with all that was changed of it; and that peaks of the machine do not change
# measured kernels.
orrery stage -q gpt2 --layers 1 --seq 128 --dp 8 -o step.orr >/dev/null
printf 'base: dgx-h100\nscale_up: {bandwidth: 900GB/s}\n' >mine.yml
printf 'base: dgx-h100\nname: ours\nscale_up: {bandwidth: 900GB/s}\n' >ours.yml
for machine in dgx-h100 dgx-h100,scale_up.bandwidth=900GB/s mine.yml ours.yml:1,overlap_cost=0 dgx-h100,memory_bandwidth=6700GB/s \
    dgx-h100,peak_tflops=1979; do
    printf '%s\n' "$machine"
    orrery run -q step.orr --machine $machine | grep '^machine'
    orrery run -q step.orr --machine $machine --json | grep '"machine"'
done
printf 'peaks count with --ideal, and of another chip nothing is said\n'
orrery run -q step.orr --machine dgx-h100,peak_tflops=1979 --ideal | grep '^machine'
orrery run -q step.orr --machine dgx-h100 --hardware h200 | grep '^machine'
