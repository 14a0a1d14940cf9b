# SPDX-License-Identifier: Apache-2.0
# Jobs that share a machine share no host: each ends when it would end alone, wherever it is placed.
orrery gen goal -q -n 4 -d 4096 -o small.goal binomialtreereduce
orrery gen goal -q -n 6 -d 65536 -o large.goal binomialtreebcast
alone() { orrery run "$1" --network loggops --json | grep '"finished_ns"' | tr -dc '0-9\n'; }
alone small.goal >want
alone large.goal >>want
for where in packed spread random; do
    orrery run small.goal --job large.goal --placement $where --hosts 12 --json |
        sed -n '/"jobs"/,$p' | grep '"finished_ns"' | tr -dc '0-9\n' | diff want - && echo $where
done
orrery run small.goal --job large.goal --placement spread | sed -n '/job/,/^$/p' | awk '{print $1, $2, $4}'
orrery run small.goal --placement rnd
