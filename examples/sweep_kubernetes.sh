#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs what the pods of sweep_jobs/kubernetes.yaml would: the command of the file, with each index.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cp "$here/sweep_jobs/grid.yaml" .

pods=$(sed -n 's/^ *completions: //p' "$here/sweep_jobs/kubernetes.yaml")
command=$(sed -n "s/^ *command: \[sh, -c, '\(.*\)'\]$/\1/p" "$here/sweep_jobs/kubernetes.yaml")
index=0
while [ "$index" -lt "$pods" ]; do
    JOB_COMPLETION_INDEX=$index sh -c "$command" &
    index=$((index + 1))
done
wait
orrery sweep merge grid.db grid.*-of-4.db

orrery -q sweep grid.yaml -o alone.db
orrery sweep export csv alone.db -o alone.csv
orrery sweep export csv grid.db | cmp - alone.csv
