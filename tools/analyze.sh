#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Static analysis of the parts that read untrusted bytes: cppcheck, clang-tidy with clang's path-sensitive analyzer
# (.clang-tidy) and gcc -fanalyzer over src/base and src/trace (without Graphviz's headers), or over the files or
# folders given: tools/analyze.sh [PATH...].  tools/analyze.h declares what reporting functions return.  A false
# positive has a line with its reason in tools/analyze_known.txt:
#     FILE ID REASON
# Anything else fails, and so does a line of that list that no longer matches a finding.  A tool that is not installed is
# skipped with a message.
set -u
cd "$(dirname "$0")/.." || exit 2
[ "${1-}" != --one ] || {
    # One process per file, because clang's check of va_list gives false reports for a second file.
    file=$2
    flags="-std=c11 -D_GNU_SOURCE -Iinclude -Isrc -Ibuild-clang/src -Ibuild/src" # the last two: headers that a build makes
    case $file in
    */error.c | */memory.c | */json_reader.c) ;; # they define the functions of analyze.h
    *) flags="$flags -include tools/analyze.h" ;;
    esac
    # shellcheck disable=SC2086
    ! command -v clang-tidy-14 >/dev/null || clang-tidy-14 --quiet "$file" -- $flags 2>/dev/null |
        sed -nE 's@^.*/(src/[^:]*):([0-9]+):[0-9]+: (warning|error): (.*) \[([^],]*).*\]$@\1 \5 line \2: \4@p'
    # shellcheck disable=SC2086
    gcc $flags -O1 -fanalyzer -c "$file" -o /dev/null 2>&1 |
        sed -nE 's@^(src/[^:]*):([0-9]+):[0-9]+: warning: (.*) \[(CWE-[0-9]+\] \[)?(-Wanalyzer[^]]*)\]$@\1 \5 line \2: \3@p'
    exit 0
}

whole=$#
[ $# -gt 0 ] || set -- src/base src/trace
found=$(mktemp)
trap 'rm -f "$found" "$found.sorted"' EXIT
if command -v cppcheck >/dev/null; then
    cppcheck --quiet --enable=warning,portability --std=c11 --inline-suppr -I include -I src \
        --suppress=missingInclude --suppress=normalCheckLevelMaxBranches --suppress=unknownMacro \
        --template='{file} {id} line {line}: {message}' "$@" 2>&1 | grep '^src/' >>"$found"
else
    echo "analyze: no cppcheck, left out"
fi
command -v clang-tidy-14 >/dev/null || echo "analyze: no clang-tidy-14, left out"
find "$@" -name '*.c' ! -name '*_missing.c' ! -name 'layout_graphviz.c' | sort |
    xargs -P "$(nproc)" -n 1 "$0" --one >>"$found"

status=0
sort -u "$found" >"$found.sorted"
while read -r file id rest; do
    grep -q "^$file $id " tools/analyze_known.txt || { echo "$file: $id $rest"; status=1; }
done <"$found.sorted"
# A line without a finding is accepted only if a tool was skipped.
if [ "$whole" -eq 0 ] && command -v cppcheck >/dev/null && command -v clang-tidy-14 >/dev/null; then
    grep '^src' tools/analyze_known.txt | while read -r file id rest; do
        grep -q "^$file $id " "$found.sorted" || echo "tools/analyze_known.txt: $file $id is found no more; take the line out"
    done >"$found"
    [ ! -s "$found" ] || { cat "$found"; status=1; }
fi
echo "analyze: $(wc -l <"$found.sorted") findings, $(grep -c '^src' tools/analyze_known.txt) known with reasons"
exit $status
