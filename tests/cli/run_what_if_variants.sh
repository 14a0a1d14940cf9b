# SPDX-License-Identifier: Apache-2.0
# What if the step were made otherwise?  Traces of orrery stage say how they were made; each variation must take what the step
# takes that is made so from the start.
sed '/^#/d' >sizes.txt <<'END'
micro-batches of 1 instead of 2|--micro-batch 1 --recompute full
micro-batches of 4 instead of 2|--micro-batch 4 --recompute full
interleaved pipeline, 2 chunks per rank|--micro-batch 2 --recompute full --pipeline interleaved --chunks 2
ZeRO 1 instead of 0|--micro-batch 2 --recompute full --zero 1
ZeRO 3 instead of 0|--micro-batch 2 --recompute full --zero 3
no recomputation|--micro-batch 2
selective recomputation|--micro-batch 2 --recompute selective
END
orrery stage -q gpt2 --pp 4 --tp 2 --dp 2 --batch 32 --micro-batch 2 --recompute full -o was.orr >stage.txt
orrery report was.orr --machine dgx-h100 --what-if simulate --json >was.json
while IFS='|' read -r change options; do
    orrery stage -q gpt2 --pp 4 --tp 2 --dp 2 --batch 32 $options -o new.orr >stage.txt
    orrery run -q new.orr --machine dgx-h100 --json >new.json
    python3 - "$change" <<'PY'
import json, sys
tried = {w["change"]: w["time_ns"] for w in json.load(open("was.json"))["runs"][0]["what_if"]}
made = json.load(open("new.json"))["simulated_ns"]
said = tried.get(sys.argv[1])
print(sys.argv[1] + ":", "the same" if said == made else f"tried {said}, made {made}")
PY
done <sizes.txt
echo "--- a variation that is too large says so"
orrery stage -q llama-3-70b --tp 8 --pp 2 --batch 8 --recompute full -o big.orr >stage.txt
orrery report big.orr --machine dgx-h100 --what-if simulate --json | grep -o '"change":"[^"]*fit)"'
echo "--- a model that was changed cannot be made again by its name"
orrery stage -q gpt2 --layers 4 --pp 2 --batch 8 -o own.orr >stage.txt
orrery report own.orr --machine dgx-h100 --what-if simulate --json | grep -c 'micro-batches\|ZeRO'
exit 0
