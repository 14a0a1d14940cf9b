#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is every C file as clang-format 14 would write it?  --fix writes it so.  Other versions break lines
# elsewhere, so the version is pinned; without it the check is skipped.
set -eu
cd "$(dirname "$0")/.."
formatter=
for candidate in clang-format-14 clang-format; do
    if "$candidate" --version 2>/dev/null | grep -q 'version 14\.'; then
        formatter=$candidate
        break
    fi
done
if [ -z "$formatter" ]; then
    echo "clang-format 14 is not installed"
    exit 77
fi
status=0
for file in $(find . -path './build*' -prune -o \( -name '*.[ch]' -o -name '*.cc' -o -name '*.hpp' \) -print | sort); do
    if [ "${1-}" = --fix ]; then
        $formatter -i "$file"
    elif ! $formatter "$file" | cmp -s - "$file"; then
        echo "${file#./}: not as clang-format 14 writes it; make format mends it"
        status=1
    fi
done
exit $status
