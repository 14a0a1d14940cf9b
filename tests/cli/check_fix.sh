# SPDX-License-Identifier: Apache-2.0
# Repairing: what was done, and what the copy is like.
cd "$ORR_ROOT/tests/broken/et"
out=$OLDPWD
for name in missing_parent same_id size_is_text zero_length_node cycle_through_control cycle_of_two; do
    (cd "$out" && cp "$OLDPWD/$name.et" . && orrery check --fix -o fixed.et $name.et)
    echo "status $?"
done
cd "$out"
printf 'x' >hopeless.et
orrery check --fix -o never.et hopeless.et
echo "status $?"
test ! -e never.et
