#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plan searches: all legal plans, with the best proven.  Called by bench/run with the programs first in PATH;
# ORR_BENCH_DIR is a folder for files.
set -eu
cd "${ORR_BENCH_DIR:-$(mktemp -d)}"

cpu() { # FILE: seconds of CPU time of all children so far (read here: a subshell would count its own)
    sed -n '2s/[ms]/ /gp' "$1" | awk '{ print $1 * 60 + $2 + $3 * 60 + $4 }'
}

search() { # ASKED WORDS...: seconds on two free cores, and what is searched
    asked=$1
    shift
    times >before
    since=$(date +%s%N)
    orrery -q plan "$@" --json >plans.json
    until=$(date +%s%N)
    times >after
    python3 - "$asked" "$(cpu before)" "$(cpu after)" "$since" "$until" <<'X'
import json, sys
asked, cpu = sys.argv[1], float(sys.argv[3]) - float(sys.argv[2])
wall = (int(sys.argv[5]) - int(sys.argv[4])) * 1e-9
d = json.load(open("plans.json"))
best = d["plans"][0]
assert d["legal"] >= d["fitting"] == d["bounded"] + d["simulated"] + d["failed"] and best["bound_s"] <= best["step_s"]
print(f"plan: {d['model']} on {d['devices']:,} of {d['machine'].split(':')[0]:<14} {cpu / 2:8.1f} s on two free cores, asked {asked}   "
      f"({cpu:.1f} s CPU, {wall:.1f} s wall; {d['legal']:,} legal, {d['fitting']:,} fit, {d['simulated']:,} simulated; "
      f"best {best['step_s']:.3g} s, MFU {100 * best['mfu']:.1f} %)")
X
}

search - llama-3-8b --machine dgx-h100:4 --batch 64 --seq 8192
search '20 s' llama-3-70b --machine dgx-h100:128 --batch 1024 --seq 8192
search '60 s' deepseek-v3 --machine h800-deepseek:256 --batch 4096 --seq 4096
