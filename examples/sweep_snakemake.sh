#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The workflow of sweep_jobs/Snakefile.  Needs Debian's package snakemake.
set -eu
command -v snakemake >/dev/null || { echo "no snakemake: Debian's package is snakemake" >&2; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cp "$here/sweep_jobs/grid.yaml" "$here/sweep_jobs/Snakefile" .

snakemake --cores 2 --quiet

orrery -q sweep grid.yaml -o alone.db
orrery sweep export csv alone.db | cmp - grid.csv
