# SPDX-License-Identifier: Apache-2.0
# Machines that are built in: the list, one of them, its file; each is a correct file.
orrery machine list
orrery machine show dgx-h100:128
orrery machine show tpu-v5p:16
orrery machine show trainium2:2 --json
orrery machine list --json | grep -o '"name": "[a-z0-9-]*"' | cut -d'"' -f4 | while read -r name; do
    orrery machine show "$name" --file >"$name.yml"
    orrery machine check "$name.yml"
    grep -v '#' "$name.yml" | grep -n '^ *[a-z_]*: [0-9]' # every figure has a remark beside it
    orrery machine show "$name" --json >a
    orrery machine show "$name.yml" --json | cmp - a
done
orrery machine show dgx-h100:3 --file | grep nodes
