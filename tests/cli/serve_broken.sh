# SPDX-License-Identifier: Apache-2.0
# Damaged lists of requests: one message each, with its place, and no file.
for file in "$ORR_ROOT"/tests/broken/requests/*; do
    cp "$file" .
    orrery serve gpt2 -r "${file##*/}" -o out.orr 2>&1 >out
    [ $? = 3 ] || echo "${file##*/}: status is not 3"
    [ ! -s out ] || echo "${file##*/}: something was printed"
    [ ! -e out.orr ] || echo "${file##*/}: something was written"
done
