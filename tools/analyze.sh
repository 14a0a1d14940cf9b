#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Static analysis of the parts that read untrusted bytes: cppcheck, clang-tidy (.clang-tidy) and gcc -fanalyzer over
# src/base and src/trace (without Graphviz's headers).  clang's path-sensitive analyzer is left out: its 44
# reports of November 2026 have not been judged yet.  A finding that is none has a line with its reason in tools/analyze_known.txt:
#     FILE ID REASON
# Anything else fails.  A tool that is not installed is skipped with a word.
set -u
cd "$(dirname "$0")/.." || exit 2
found=$(mktemp)
trap 'rm -f "$found"' EXIT
flags="-std=c11 -D_GNU_SOURCE -Iinclude -Isrc"
files=$(find src/base src/trace -name '*.c' ! -name '*_missing.c' ! -name 'layout_graphviz.c' | sort)

if command -v cppcheck >/dev/null; then
    cppcheck --quiet --enable=warning,portability --std=c11 --inline-suppr -I include -I src \
        --suppress=missingInclude --suppress=normalCheckLevelMaxBranches --suppress=unknownMacro \
        --template='{file} {id} line {line}: {message}' src/base src/trace 2>&1 | grep '^src/' >>"$found"
else
    echo "analyze: no cppcheck, left out"
fi
if command -v clang-tidy-14 >/dev/null; then
    # shellcheck disable=SC2086
    clang-tidy-14 --quiet --checks='-clang-analyzer-*' $files -- $flags 2>/dev/null |
        sed -nE 's@^.*/(src/[^:]*):([0-9]+):[0-9]+: (warning|error): (.*) \[([^],]*).*\]$@\1 \5 line \2: \4@p' >>"$found"
else
    echo "analyze: no clang-tidy-14, left out"
fi
for file in $files; do
    # shellcheck disable=SC2086
    gcc $flags -O1 -fanalyzer -c "$file" -o /dev/null 2>&1 |
        sed -nE 's@^(src/[^:]*):([0-9]+):[0-9]+: warning: (.*) \[(CWE-[0-9]+\] \[)?(-Wanalyzer[^]]*)\]$@\1 \5 line \2: \3@p' >>"$found"
done

status=0
sort -u "$found" >"$found.sorted"
while read -r file id rest; do
    grep -q "^$file $id " tools/analyze_known.txt || { echo "$file: $id $rest"; status=1; }
done <"$found.sorted"
echo "analyze: $(wc -l <"$found.sorted") findings, $(grep -c '^src' tools/analyze_known.txt) known with reasons"
rm -f "$found.sorted"
exit $status
