# SPDX-License-Identifier: Apache-2.0
# Jobs of generated traces compute as long as each does alone: the machine's chip times their kernels.
orrery stage -q llama-3-8b --tp 8 --dp 1 --layers 2 --batch 2 -o a.orr >/dev/null
orrery stage -q llama-3-8b --tp 4 --dp 2 --layers 1 --batch 2 -o b.orr >/dev/null
compute() { orrery run -q "$@" --network unaware --json | sed -n 's/^      "compute_ns": \([0-9]*\),$/\1/p'; }
{ compute a.orr --machine dgx-h100:1; compute b.orr --machine dgx-h100:1; } >alone
compute a.orr --job b.orr --machine dgx-h100:2 >together
paste alone together | awk '{d = $2 / $1 - 1; if (d < -0.01 || d > 0.01) bad++} END {print NR " ranks, " bad + 0 " differ"}'
orrery run a.orr --job b.orr --machine dgx-h100:2 2>&1 >/dev/null
# So does a schedule of them; without a chip it says what is missing.
end() { orrery run b.orr --network loggops "$@" --json | sed -n 's/^ *"finished_ns": \([0-9]*\).*/\1/p' | head -1; }
bare=$(end 2>note) timed=$(end --hardware h100)
cat note
echo "$(((timed - bare) / 1000000)) ms of compute"
orrery convert goal b.orr -q -o b.goal --hardware h100
orrery run b.goal --hardware h100
