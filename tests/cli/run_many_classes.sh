# SPDX-License-Identifier: Apache-2.0
# 131,072 ranks of 1,024 stages take about as long to prepare as those of 32: what is asked of all ranks of a class does not
# look at all ranks for each.  The CPU time of a run was 1.1 s instead of 0.2.
cpu_of() {
    orrery stage -q llama-3-8b --layers "$1" --hidden 256 --heads 2 --kv-heads 2 --ffn 512 --vocab 512 --seq 128 --tp 2 \
        --pp "$1" --dp "$2" --batch "$2" --zero 1 -o "$1.orr" >/dev/null
    sh -c "orrery run -q $1.orr --machine dgx-h100:16384 >$1.txt; times" | tail -n 1 | tr 'ms' '  ' | awk '{ print 60 * $1 + $2 }'
}
few=$(cpu_of 32 2048)
many=$(cpu_of 1024 64)
head -n 1 32.txt 1024.txt | grep -c '131072 ranks finished'
awk -v few="$few" -v many="$many" 'BEGIN { print (many < 3 * few + 0.1 ? "about as long" : "1,024 classes: " many " s; 32: " few " s") }'
