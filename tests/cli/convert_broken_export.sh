# SPDX-License-Identifier: Apache-2.0
# Every broken program is refused with a place, and nothing is written.
for file in "$ORR_ROOT"/tests/broken/pt2/*; do
    cp "$file" .
    name=${file##*/}
    orrery convert export "$name" -o out.orr 2>&1
    echo "exit $?"
    [ -e out.orr ] && echo "out.orr was written"
done
:
