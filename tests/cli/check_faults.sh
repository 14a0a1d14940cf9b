# SPDX-License-Identifier: Apache-2.0
# One line a finding: file, byte, severity, node, words, kind; then a summary; status 1.
cd "$ORR_ROOT/tests/broken/et"
for name in cycle_through_control missing_parent same_id size_is_text; do
    orrery check $name.et
    echo "status $?"
done
orrery check stream_is_text.et
echo "status $?"
orrery check --strict stream_is_text.et
