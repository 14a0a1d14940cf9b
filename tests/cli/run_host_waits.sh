# SPDX-License-Identifier: Apache-2.0
# What the host's waits take communication for is what the run moves: the host issues on while the device communicates.
time_of() {
    orrery -q run "$@" --json | sed -n 's/.*"simulated_ns": *\([0-9]*\).*/\1/p' | head -1
}
# Twelve nodes with a collective after each but the last, of the same size on all eight ranks.
chain() { # nodes, comm_type, bytes
    awk -v nodes="$1" -v kind="$2" -v bytes="$3" 'BEGIN {
        printf "{\"format\": \"orrery-trace\", \"version\": 1, \"metadata\": {\"version\": \"1.0.0\"}, \"nodes\": ["
        for (i = 0; i < 2 * nodes - 1; i++) {
            printf "%s{\"id\": \"%d\", \"name\": \"n%d\", ", i ? ", " : "", i + 1, i
            if (i) printf "\"dataDeps\": [\"%d\"], ", i
            if (i % 2)
                printf "\"type\": \"COMM_COLL_NODE\", \"attr\": [{\"name\": \"comm_type\", \"int64Val\": \"%d\"}, {\"name\": \"comm_size\", \"int64Val\": \"%d\"}, ", kind, bytes
            else
                printf "\"type\": \"COMP_NODE\", \"attr\": [{\"name\": \"num_ops\", \"int64Val\": \"1\"}, {\"name\": \"tensor_size\", \"uint64Val\": \"8388608\"}, "
            printf "{\"name\": \"is_cpu_op\", \"boolVal\": false}]}"
        }
        print "]}" }' >chain.json
    orrery -q convert et chain.json -o chain.0.et >/dev/null
    for rank in 1 2 3 4 5 6 7; do cp chain.0.et chain.$rank.et; done
}
chain 1 0 0
kernel=$(time_of chain --machine dgx-h100 --software cuda-graph)
one=$(time_of chain --machine dgx-h100 --software torch-eager)
host=$((2 * (one - kernel))) # half of a node's host time goes by before its first kernel
# By hand: with h of host and k of kernels per node, and q of host (40 us for torch-eager) and c per collective, the
# device starts node i at (i + 1/2) h + i q if c + k < h + q; else only node 0 waits for the host.
check() { # name, comm_type, bytes of comm_size, bytes as nccl-tests counts them
    chain 12 "$2" "$3"
    each=$(orrery nccl-tests -m dgx-h100 --op "$1" -b "$4" -e "$4" --json | sed -n 's/.*"time_us": *\([0-9.]*\).*/\1/p' | head -1)
    now=$(time_of chain --machine dgx-h100 --software torch-eager)
    awk -v name="$1" -v bytes="$4" -v h=$host -v k="$kernel" -v c="$each" -v now="$now" 'BEGIN {
        c *= 1000
        q = 40000
        hidden = c + k < h + q
        expected = hidden ? 11.5 * h + 11 * q + k : h / 2 + 12 * k + 11 * c
        apart = now - expected
        print name, bytes, hidden ? "behind the host:" : "longer than the host:", apart * apart < 100 * 100 ? "as by hand" : now " ns, by hand " expected }'
}
for bytes in 262144 67108864; do
    check all_reduce 0 $bytes $bytes
    check all_gather 2 $((bytes / 8)) $bytes
    check reduce_scatter 7 $bytes $bytes
    check alltoall 6 $bytes $bytes
done
# Faster links never make a step longer.
rising() { # what, trace, machine and its key, GB/s
    last=999999999999 longer=0
    for rate in $4; do
        now=$(time_of "$2" --machine "$3=${rate}GB/s")
        test "$now" -le $last || echo "$1 at $rate GB/s: $now ns, with slower links $last"
        test "$now" -le $last || longer=1
        last=$now
    done
    test $longer = 1 || echo "$1: never longer"
}
orrery -q stage llama-3-8b --layers 16 --tp 4 --cp 4 --batch 4 --seq 4096 --software deepspeed -o dense.orr >made.txt
rising "dense, NVLink" dense.orr dgx-h100:2,scale_up.bandwidth "225 450 900 3600"
rising "dense, a torus" dense.orr tpu-v5p:4,scale_up.bandwidth "600 1200 2400"
orrery -q stage mixtral-8x7b --layers 4 --tp 2 --ep 4 --dp 4 --batch 8 --seq 512 --software megatron-2021 -o experts.orr >made.txt
rising "experts, a torus" experts.orr tpu-v5p:2,scale_up.bandwidth "600 1200 2400"
# Nodes of six: groups of four are within a node or on two.  Separate files and one with classes, folded or not.
orrery -q stage llama-3-8b --layers 2 --tp 4 --dp 3 --batch 24 --seq 2048 --software megatron-2021 -o apart.orr >made.txt
orrery -q convert et apart.orr -o apart >made.txt
for traces in apart.orr apart; do
    for fold in auto off; do
        time_of $traces --machine dgx-h100:2,devices=6 --fold $fold
    done
done | sort -u | awk 'END { print NR == 1 ? "on unlike nodes: the same time four times" : NR " different times" }'
