# SPDX-License-Identifier: Apache-2.0
# No line of a help text has more than 80 columns.
{
    echo algorithms networks figures
    orrery help | sed -nE 's/^  ([a-z-]+) .*/\1/p'
} | tr ' ' '\n' | sort -u | while read -r topic; do
    orrery help "$topic" 2>/dev/null | awk -v topic="$topic" 'length($0) > 80 { print topic ": " $0 }'
done
