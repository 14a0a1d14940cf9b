# SPDX-License-Identifier: Apache-2.0
# A timeline with one rank of those that are alike: it says for which ranks a row stands, and a report or a comparison made
# of it has the figures of one with all ranks.
orrery stage -q llama-3-8b --tp 2 --pp 2 --dp 4 --batch 16 --layers 4 -o step.orr >/dev/null
for rows in all alike; do
    orrery run -q step.orr --machine dgx-h100:2 --timeline $rows.json --timeline-ranks $rows >/dev/null
    orrery report -q $rows.json -o $rows.html
    sed 's/"made_from":"[^"]*"//; s/"title":"[^"]*"//; s/{"name":"[^"]*.json"/{/; s/"events":[0-9]*//' $rows.html |
        grep -o '"breakdown":.*"timeline":\|"collectives":.*"topology":\|"pipeline":.*"what_if":' >$rows.figures
done
grep -c '"process_name"' all.json alike.json
grep -o '"name":"ranks [0-9][^"]*"' alike.json
cmp all.figures alike.figures && grep -c stage alike.figures
# What differs beside the names of the files.
orrery diff all.json alike.json >diff.txt; orrery diff all.json all.json | diff - diff.txt
# The same as text.
orrery run -q step.orr --machine dgx-h100:2 --gantt | grep -c '^rank'
# What does not fit.
orrery run step.orr --machine dgx-h100:2 --timeline-ranks alike
orrery run step.orr --machine dgx-h100:2 --timeline t.json --timeline-ranks some
