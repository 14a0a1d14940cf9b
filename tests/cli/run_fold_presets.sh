# SPDX-License-Identifier: Apache-2.0
# Table, CSV and report of a folded run are those of every rank simulated, to the byte, but for the line that says so.
same() # NETWORK MACHINE, of step.orr
{
    for how in auto off; do
        orrery run -q step.orr --machine "$2" --network "$1" --fold $how --csv $how.csv --report $how.html \
            --what-if off >$how.txt
        sed 's/"made_from":"[^"]*"//; s/"events":[0-9]*//; s/"ranks_simulated":[0-9]*,//' $how.html >$how.page
    done
    diff <(sed '/^network/d' auto.txt) <(sed '/^network/d' off.txt) && cmp auto.csv off.csv &&
        cmp auto.page off.page && (grep -o '[0-9,]* of [0-9,]* ranks simulated' auto.txt || echo 'every rank simulated')
}
step() # MODEL OPTIONS
{
    orrery stage -q "$@" -o step.orr >/dev/null
}
step llama-3-8b --tp 8 --pp 2 --dp 4 --batch 16 --layers 4
same fluid dgx-h100:8
same unaware dgx-h100:8
step mixtral-8x7b --tp 2 --pp 2 --dp 8 --ep 4 --batch 16 --layers 4 --zero 1
same fluid dgx-h100:4
same unaware dgx-h100:4
step gpt-3-175b --tp 8 --pp 4 --dp 2 --batch 8 --layers 8 --pipeline interleaved
same fluid dgx-a100:8
same unaware dgx-a100:8
step llama-3-70b --tp 4 --pp 2 --dp 8 --batch 16 --layers 4 --zero 3
same fluid dgx-h100:8
same unaware dgx-h100:8
step deepseek-v3 --pp 2 --dp 16 --ep 16 --batch 32 --layers 4
same fluid dgx-h100:4
same unaware dgx-h100:4
