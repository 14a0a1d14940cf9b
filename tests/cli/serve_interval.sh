# SPDX-License-Identifier: Apache-2.0
# Estimates have the interval of their run, to 4 % of the time; peaks have none; plans that overlap the first are undecided.
number() { tr -d ' \n' <"$2" | sed -n "s/.*\"$1\":\\[*\\([0-9.]*\\).*/\\1/p"; }
upper() { tr -d ' \n' <"$2" | sed -n "s/.*\"$1\":\\[[0-9]*,\\([0-9]*\\)\\].*/\\1/p"; }
like() {
    orrery serve -q "$@" --json -o set.orr >serve.json
    orrery run -q set.orr --machine dgx-h100 --json >run.json
    for what in first_token_mean next_token_mean; do
        echo "$(number ${what}_ps serve.json) $(number ${what}_interval_ps serve.json) $(upper ${what}_interval_ps serve.json)" \
            "$(number ${what}_ns run.json) $(number ${what}_interval_ns run.json) $(upper ${what}_interval_ns run.json)"
    done | awk -v what="$*" 'function near(a, b) { return a > 0 && (a - b) * (a - b) < 0.0016 }
         { bad += !(near($2 / $1, $5 / $4) && near($3 / $1, $6 / $4) && $2 < $1 && $1 < $3) }
         END { print what ": " (bad ? "not as the run" : "as the run") }'
}
like llama-3-8b --machine dgx-h100 -b 4 -p 512 -n 8
like llama-3-8b --machine dgx-h100 --tp 8 -b 4 -p 512 -n 8
like llama-3-8b --machine dgx-h100 --tp 2 --pp 2 --dp 2 -b 8 -p 512 -n 8
like llama-3-8b --machine dgx-h100 --software torch-eager -b 4 -p 64 -n 8
orrery serve -q llama-3-8b --machine dgx-h100 -b 4 -n 8 | sed -n '/^first/s/[0-9][0-9.]*/N/gp'
orrery serve -q llama-3-8b --machine dgx-h100 -b 4 -n 8 --ideal | sed -n '/^first/s/[0-9][0-9.]*/N/gp'
orrery serve -q llama-3-8b --machine dgx-h100 -b 4 -n 8 --ideal --json | grep -c interval
orrery plan -q llama-3-8b --machine dgx-h100:1 --serve --json | python3 -c '
import json, sys
plans = json.load(sys.stdin)["plans"]
print([p["undecided"] for p in plans], all(p["ttft_interval_s"][0] < p["ttft_s"] < p["ttft_interval_s"][1] for p in plans))'
