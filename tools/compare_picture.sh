#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare_picture.sh - draws the picture of docs/design/packet.md: ring all-reduces of five sizes on three network
# models.
#
#     tools/compare_picture.sh OUT.svg        with orrery in PATH
set -e
case "$1" in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
printf 'topology: [Switch]\nnpus_count: [8]\nbandwidth: [46.5661]\nlatency: [500]\n' >net.yml
cat >sys.json <<'SYSTEM'
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
 "all-reduce-implementation": ["ring"], "collective-optimization": "localBWAware", "local-mem-bw": 1600}
SYSTEM
for size in 16KiB:16384 128KiB:131072 1MiB:1048576 8MiB:8388608 64MiB:67108864; do
    orrery -q gen all_reduce --ranks 8 --comm-size "${size#*:}" -o "${size%:*}.orr"
done
orrery -q run 16KiB.orr --compare-traces 128KiB.orr,1MiB.orr,8MiB.orr,64MiB.orr -s sys.json -t net.yml \
    --compare unaware,aware,packet --compare-chart "$out"
