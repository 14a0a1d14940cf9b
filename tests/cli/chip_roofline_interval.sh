# SPDX-License-Identifier: Apache-2.0
# Where all kernels are timed by a roofline its efficiencies are wrong together: the interval of a step is as wide as that of
# a kernel, a factor of 2.2. Measured kernels have independent errors.
interval_of() {
    orrery run -q "$@" --json | tr -d '\n ' | sed -n 's/.*"simulated_ns":\([0-9]*\).*"interval_ns":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2 \3/p'
}
orrery stage -q gpt2 --layers 4 --batch 4 --micro-batch 4 --software cuda-graph -o step.orr >made.txt
for chip in mi300x tpu-v5p h100; do
    interval_of step.orr --hardware $chip | awk -v chip=$chip '{ low = $1 / $2; high = $3 / $1
        print chip ": " (low > 2 && low < 2.3 && high > 2 && high < 2.3 ? "a factor of 2.2" : low < 1.3 && high < 1.3 ? "narrow" : low " " high) }'
done
