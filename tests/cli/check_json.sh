# SPDX-License-Identifier: Apache-2.0
cp "$ORR_ROOT/tests/broken/et/missing_parent.et" a.et
orrery check --json a.et
echo "status $?"
orrery check --json --fix -o b.et a.et
