# SPDX-License-Identifier: Apache-2.0
# Everything that cannot be: status 2, words, and no file.
try() {
    "$@" 2>&1
    echo "exit $?"
}
try orrery gen goal
try orrery gen goal disseminatoin
try orrery gen goal dissemination --root 1 -n 1 -o -
try orrery gen goal scatter --root 8
try orrery gen goal scatter --root x
try orrery gen goal pipelinedring --segmentsize 0
try orrery gen goal allreduce_recdoub --rpl-dep-cmp -7
try orrery gen goal dissemination -d 4QB
try orrery gen goal dissemination -d 99999999999999999999
try orrery gen goal dissemination --nb -3us
try orrery gen goal linear_alltoallv -d 4 --a2av-skew-ratio 5
try orrery gen goal dissemination --json -o -
try orrery gen goal trace
try orrery gen goal trace --traces nothing-0.dat
try orrery gen goal trace --traces nothing.dat
try orrery help gen gaol
ls
