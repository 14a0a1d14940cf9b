# SPDX-License-Identifier: Apache-2.0
# Traces of a training step, nothing wrong with them, what is in them, and how long they take; the commands shown do the same.
orrery demo --ranks 32
orrery run -q orrery-demo/step.orr -s orrery-demo/system.json -t orrery-demo/network.yml -m orrery-demo/memory.json \
    --json --timeline again.json | sed -n 's/.*"simulated_ns": \([0-9]*\),/\1/p'
sed 1d again.json | cmp - <(sed 1d orrery-demo/timeline.json) # the first line says where it comes from
ls orrery-demo | wc -l
