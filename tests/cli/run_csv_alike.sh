# SPDX-License-Identifier: Apache-2.0
# A table with one row for all ranks with the same figures: it says for which ranks, and has what one row per rank has.
orrery stage -q llama-3-8b --tp 2 --pp 2 --dp 4 --batch 16 --layers 4 -o step.orr >/dev/null
printf 'ranks: [{ranks: 3, compute: 0.9}]' >slow.yml
for fold in auto off; do
    orrery run -q step.orr --machine dgx-h100:2 --ranks-file slow.yml --fold $fold --csv $fold.csv --csv-ranks alike >/dev/null
    orrery run -q step.orr --machine dgx-h100:2 --ranks-file slow.yml --fold $fold --csv all.csv >/dev/null
    # Row by row: "0-6/2,9" as ranks, then sorted by rank, must be the other table.
    sed '/^[#r]/d; s/^"\([^"]*\)",[0-9]*/\1 /' $fold.csv | while read -r ranks rest; do
        for part in $(echo "$ranks" | tr , ' '); do
            range=${part%/*} step=1
            [ "$range" = "$part" ] || step=${part#*/}
            for rank in $(seq ${range%-*} $step ${range#*-}); do echo "$rank$rest"; done
        done
    done | sort -n | diff - <(sed '/^[#r]/d' all.csv) && echo "the same rows"
done
cmp auto.csv off.csv
sed '/^#/d' auto.csv | cut -d'"' -f2
head -1 auto.csv
orrery gen goal -q allreduce_recdoub -n 16 -d 1000 -o g.goal >/dev/null
orrery run -q g.goal --csv g.csv --csv-ranks alike >/dev/null
cat g.csv
# What does not fit.
orrery run step.orr --machine dgx-h100:2 --csv-ranks alike
orrery run step.orr --machine dgx-h100:2 --csv t.csv --csv-ranks some
