# SPDX-License-Identifier: Apache-2.0
cp "$ORR_ROOT/tests/broken/et/missing_parent.et" a.et
version='"orrery [0-9.]*"'
orrery check --json a.et | sed "s/$version/VERSION/"
echo "status ${PIPESTATUS[0]}"
orrery check --json --strict --fix -o b.et a.et | sed "s/$version/VERSION/"
