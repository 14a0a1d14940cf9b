# SPDX-License-Identifier: Apache-2.0
# Damaged descriptions of models: one message each, with its place, and nothing on standard output.
for file in "$ORR_ROOT"/tests/broken/model/*; do
    cp "$file" .
    orrery model "${file##*/}" 2>&1 >out
    [ $? = 3 ] || echo "${file##*/}: status is not 3"
    [ ! -s out ] || echo "${file##*/}: something was printed"
done
