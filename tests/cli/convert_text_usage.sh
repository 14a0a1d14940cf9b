# SPDX-License-Identifier: Apache-2.0
# What cannot be meant is refused with exit status 2, and nothing is written.
printf 'HYBRID_TRANSFORMER group: 2\n1\na -1 1 NONE 0 2 NONE 0 3 ALLREDUCE 8 5\n' >t.txt
try() {
    orrery convert "$@"
    echo "exit $?"
}
try text t.txt -o x.orr
try text t.txt -o x.orr --npus 0
try text t.txt -o x.orr --npus 2000000
try text t.txt -o x.orr --npus 4 --passes 0
try text t.txt -o x.orr --npus 4 --dims 2
try text t.txt -o x.orr --npus 4 --dims 2x
try text t.txt -o x.orr --npus 4 --dims 2x3
try text t.txt -o x.orr --npus 4 --dims 65
try text t.txt -o x.orr --dims 2048x2048
try text t.txt -o x.orr --npus 4 --compat --updates
try text t.txt -o x.orr --npus 4 --frequency 7
try text t.txt -o x.orr --npus 4 --lenient
try et t.txt -o x.orr --npus 4
try flexflow t.txt -o x.orr --compat
try text t.txt -o - --npus 1 --json
try text nowhere.txt -o x.orr --npus 4
ls
