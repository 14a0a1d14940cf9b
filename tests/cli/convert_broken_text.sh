# SPDX-License-Identifier: Apache-2.0
# Every damaged text workload: one line with its place, exit status 3, nothing written.
for file in "$ORR_ROOT"/tests/broken/text/*.txt; do
    name=$(basename "$file")
    cp "$file" "$name"
    orrery convert text "$name" --npus 4 -o out.orr 2>&1
    echo "exit $?"
    rm "$name"
done
ls
