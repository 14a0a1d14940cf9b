#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that every C file is formatted by clang-format 14; --fix reformats.  Other versions break lines differently, so
# the version is pinned; without it the check is skipped.
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
# One process for many files, since starting it costs more than formatting a file.
list() {
    find . -path './build*' -prune -o \( -name '*.[ch]' -o -name '*.cc' -o -name '*.hpp' \) -print | sort
}
if [ "${1-}" = --fix ]; then
    list | xargs -n 100 "$formatter" -i
elif ! list | xargs -n 100 "$formatter" --dry-run -Werror 2>/dev/null; then
    list | xargs -n 100 "$formatter" --dry-run 2>&1 |
        sed -n 's|^\./\([^:]*\):.*clang-format-violations.*|\1: not as clang-format 14 writes it; make format mends it|p' | uniq
    exit 1
fi
