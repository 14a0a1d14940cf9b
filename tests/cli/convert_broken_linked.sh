# SPDX-License-Identifier: Apache-2.0
# Every broken linked trace is refused with a place, and nothing is written.
for file in "$ORR_ROOT"/tests/broken/linked/*; do
    cp "$file" .
    name=${file##*/}
    orrery convert pytorch "$name" -o out.et 2>&1
    echo "exit $?"
    [ -e out.et ] && echo "out.et was written"
done
:
