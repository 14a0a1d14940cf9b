# SPDX-License-Identifier: Apache-2.0
# Traces of a training step, nothing wrong with them, what is in them, and how long they take; the commands shown do the same.
orrery demo --ranks 32
orrery run -q orrery-demo/step.orr --machine dgx-h100 --json --timeline again.json |
    sed -n 's/.*"simulated_ns": \([0-9]*\),/\1/p'
sed 1d again.json | cmp - <(zcat orrery-demo/timeline.json.gz | sed 1d) # the first line says where it comes from
ls orrery-demo | wc -l
orrery demo --ranks 12 2>&1 || echo "status $?"
