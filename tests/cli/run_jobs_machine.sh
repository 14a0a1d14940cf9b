# SPDX-License-Identifier: Apache-2.0
# Jobs of generated traces compute as long as each does alone: the machine's chip times their kernels.
orrery stage -q llama-3-8b --tp 8 --dp 1 --layers 2 --batch 2 -o a.orr >/dev/null
orrery stage -q llama-3-8b --tp 4 --dp 2 --layers 1 --batch 2 -o b.orr >/dev/null
compute() { orrery run -q "$@" --network unaware --json | sed -n 's/^      "compute_ns": \([0-9]*\),$/\1/p'; }
{ compute a.orr --machine dgx-h100:1; compute b.orr --machine dgx-h100:1; } >alone
compute a.orr --job b.orr --machine dgx-h100:2 >together
paste alone together | awk '{d = $2 / $1 - 1; if (d < -0.01 || d > 0.01) bad++} END {print NR " ranks, " bad + 0 " differ"}'
# Jobs that share nothing take as long as alone, to the nanosecond, in any order, beside hosts that do nothing.
end_of() { orrery run -q "$@" --json | sed -n 's/^  "simulated_ns": \([0-9]*\),$/\1/p'; }
ends() { orrery run -q "$@" --json | sed -n '/"jobs"/,/"finish_order"/s/^      "finished_ns": \([0-9]*\),$/\1/p'; }
for network in fluid unaware aware; do
    { end_of a.orr --machine dgx-h100:1 -n $network; end_of b.orr --machine dgx-h100:1 -n $network; } >alone
    ends a.orr --job b.orr --machine dgx-h100:3 --hosts 24 -n $network >together
    cmp alone together && echo "$network: each as long as alone"
done
orrery run a.orr --job b.orr --machine dgx-h100:2 --fold-why 2>&1 >text
sed -n '/^job/,/^$/p' text | awk 'NF {print $1, $2, $3}'
# Spread over two nodes, each job sends across the network.
ends a.orr --job b.orr --machine dgx-h100:2 --placement spread >spread
paste alone spread | awk '{print ($2 > $1 ? "longer" : "NOT longer")}'
# Hosts that nobody uses are no devices of the job, and a page of jobs has no variants of one of them.
for hosts in 8 16; do
    orrery run -q a.orr --hosts $hosts --machine dgx-h100:$((hosts / 8)) --json | grep -E '"(tokens_per_s_per_device|mfu)"'
done | sort | uniq -c | awk '{print $1, $2}'
orrery run -q a.orr --job b.orr --machine dgx-h100:2 --report jobs.html >/dev/null && echo report
# What cannot be moved runs message by message, and says why.
orrery convert et b.orr -q -o b
orrery run b.orr --job b.orr --groups b.json --machine dgx-h100:2 2>&1 >/dev/null | cut -c1-60
printf 'num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n' >p.goal
orrery run b.orr --job p.goal --hosts 16 --machine dgx-h100:2 2>&1 >/dev/null | cut -c1-60
# So does a schedule of them; without a chip it says what is missing.
end() { orrery run b.orr --network loggops "$@" --json | sed -n 's/^ *"finished_ns": \([0-9]*\).*/\1/p' | head -1; }
bare=$(end 2>note) timed=$(end --hardware h100)
cat note
echo "$(((timed - bare) / 1000000)) ms of compute"
orrery convert goal b.orr -q -o b.goal --hardware h100
orrery run b.goal --hardware h100
