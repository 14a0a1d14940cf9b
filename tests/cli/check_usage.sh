# SPDX-License-Identifier: Apache-2.0
orrery -q gen one_comp_node --ranks 1 -o a.et
orrery check --fix a.et
echo "status $?"
orrery check -o b.et a.et
echo "status $?"
orrery check
echo "status $?"
orrery check --stric a.et
echo "status $?"
orrery check --limit 0 a.et
echo "status $?"
orrery check missing.et
