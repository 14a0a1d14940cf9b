#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A sweep in shards under GNU parallel: each task computes its part into its own database, merge combines them.
# `parallel --sshlogin` spreads the same tasks over machines with a common folder.  Needs Debian's package parallel.
set -eu
command -v parallel >/dev/null || { echo "no GNU parallel: Debian's package is parallel" >&2; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >grid.yaml <<'END'
command: serve
options: {model: llama-3-8b, batch: 16, machine: dgx-h100:1}
axes: {tp: [1, 2, 4, 8], prompt-tokens: {from: 128, to: 2048, factor: 4}}
END

parallel --will-cite -j 2 orrery -q sweep grid.yaml -j 1 --shard {}/4 ::: 1 2 3 4
orrery sweep merge grid.db grid.*-of-4.db

orrery -q sweep grid.yaml -o alone.db
orrery sweep export csv alone.db -o alone.csv
orrery sweep export csv grid.db | cmp - alone.csv
orrery sweep show grid.db --columns tp,prompt-tokens,estimate.time_ps
