#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that every header compiles alone: public ones as C11 and as C++17, with warnings that users may enable;
# internal ones as C11; that orrery.h includes all stable headers, and lab/lab.h all headers of lab.
set -eu
cd "$(dirname "$0")/.."
warnings='-Wall -Wextra -Wshadow -Wconversion -Wundef -Werror'
status=0
try() {
    "$@" || {
        status=1
        echo "does not compile alone: $*"
    }
}
for header in include/orrery/*.h include/orrery/lab/*.h include/orrery/*.hpp; do
    [ -e "$header" ] || continue
    case $header in
    *.hpp | */orrery.h | */lab/lab.h) ;;
    *)
        all=include/orrery/orrery.h
        case $header in */lab/*) all=include/orrery/lab/lab.h ;; esac
        grep -qs "<${header#include/}>" $all || {
            status=1
            echo "$all does not include <${header#include/}>"
        }
        ;;
    esac
    case $header in *.hpp) ;; *) try gcc -std=c11 -pedantic $warnings -Iinclude -fsyntax-only -x c "$header" ;; esac
    try g++ -std=c++17 -pedantic $warnings -Iinclude -fsyntax-only -x c++ "$header"
done
for header in $(find src cli -name '*.h'); do
    try gcc -std=c11 -D_GNU_SOURCE $warnings -Iinclude -Isrc -Icli -fsyntax-only -x c "$header"
done
exit $status
