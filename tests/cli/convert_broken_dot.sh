# SPDX-License-Identifier: Apache-2.0
# Every damaged task graph: one line with its place, exit status 3, nothing written.
for file in "$ORR_ROOT"/tests/broken/dot/*.dot; do
    name=$(basename "$file")
    cp "$file" "$name"
    orrery convert flexflow "$name" --frequency 1000 -o out.orr 2>&1
    echo "exit $?"
    rm "$name"
done
ls
