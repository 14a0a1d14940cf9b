# SPDX-License-Identifier: Apache-2.0
# A program called python3 that stands in for a Python with PyTorch, for tests: . "$ORR_ROOT/tests/capture/stand_in.sh"
#
#     stand_in TORCH_VERSION 'COMMANDS'      COMMANDS run for `python3 .../orrery_capture.py ...`, with $output set
#
# It is the only Python in PATH.  Temporary folders go to ./tmp, so that a test can see them gone.
mkdir -p bin tmp
export TMPDIR="$PWD/tmp"
# The folders of PATH without those that have a Python of their own: what tests need is linked.
for tool in sh cat cp ls kill sleep echo printf grep sed env head cmp mkdir rm chmod; do
    at=$(command -v "$tool") && [ "${at#/}" != "$at" ] && ln -sf "$at" "bin/$tool"
done
ln -sf "$(command -v orrery)" bin/orrery
PATH=bin

stand_in() {
    {
        echo '#!/bin/sh'
        echo 'if [ "$1" = -c ]; then'
        echo "    printf 'orrery-python 3.12.3\norrery-torch %s\n' '$1'"
        echo '    exit 0'
        echo 'fi'
        echo 'arguments=$*'
        echo 'while [ "$1" != --output ]; do shift; done'
        echo 'output=$2'
        printf '%s\n' "$2"
    } >bin/python3
    chmod +x bin/python3
}
