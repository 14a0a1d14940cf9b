# SPDX-License-Identifier: Apache-2.0
# Every damaged schedule: one line with its place, exit status 3, nothing written.
for file in "$ORR_ROOT"/tests/broken/goal/*; do
    name=$(basename "$file")
    cp "$file" "$name"
    orrery convert goal "$name" -o out.bin 2>&1
    echo "exit $?"
    rm "$name"
done
ls
