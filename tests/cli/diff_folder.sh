# SPDX-License-Identifier: Apache-2.0
# The runs of diff: a folder with a file for each rank is one run of all of them.
mkdir run
for rank in 0 1; do
    printf '{"distributedInfo":{"rank":%d},"traceEvents":[{"ph":"X","cat":"kernel","name":"mm","pid":0,"tid":7,"ts":1,"dur":%d}]}' \
        $rank $((10 + rank * 4)) >run/rank$rank.json
done
orrery diff run run --json | grep -A2 '"ranks"'
orrery diff run run -n 1 | grep mm
