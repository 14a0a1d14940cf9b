# SPDX-License-Identifier: Apache-2.0
# What cannot be meant is refused with exit status 2, before anything is read.
try() {
    orrery convert "$@"
    echo "exit $?"
}
try et x.et
try texts x.txt -o x.et
try word x.txt -o x.et
try et x.et -o out/
try et x.et -o x.json --schema eg
try et x.et -o x.et --schema eg --same-schema
try et x.et -o x.et --compress
try et x.et -o x.orr.gz
orrery gen -q all_reduce --ranks 2 -o ring
try et ring -o -
try et ring -o x --ranks 1-2
try et ring -o x --ranks 1-
ls
