# SPDX-License-Identifier: Apache-2.0
# room: nsight
# Every command that simulates has the same three limits: it stops with what is known, says which limit it was, status 130.
for command in run report demo plan sweep; do
    for option in max-time max-memory max-events; do
        orrery help $command | grep -q -- "--$option" || echo "orrery $command has no --$option"
    done
done
orrery -q stage gpt2 --dp 2 --batch 4 -o step.orr >/dev/null
t() { orrery -q "$@" >out 2>err; echo "status $?"; sed 's/reached: .* of simulated time/reached: at some time/' err; }
page() { grep -q '</html>' "$1" && echo "the page is whole"; rm "$1"; }
echo "report:"
t report step.orr --machine dgx-a100,dgx-h100 --max-events 20 -o r.html
page r.html
t report step.orr --machine dgx-h100 --max-memory 1KiB -o r.html
page r.html
t report step.orr --machine dgx-h100 --max-events 100000000 -o r.html
orrery -q run step.orr --machine dgx-h100 --timeline t.json >/dev/null
t report t.json --max-events 5 -o r.html
t report step.orr --machine dgx-h100 --max-time 5 -o r.html
echo "changes that a limit ends:"
events=$(orrery -q run step.orr --machine dgx-h100 --json | sed -n 's/^ *"events": \([0-9]*\),/\1/p')
t run step.orr --machine dgx-h100 --report r.html --what-if simulate --max-events "$events"
grep -o 'A limit of the run was reached while changes were tried: some are missing.' r.html
page r.html
echo "compare:" # what was run before the limit is shown
orrery -q run step.orr --machine dgx-h100 --compare unaware >first
events=$(awk 'NR == 2 {print $NF}' first)
t run step.orr --machine dgx-h100 --compare unaware,packet --max-events "$events" | sed "s/of $events ev/of N ev/"
cmp first out
t run step.orr --machine dgx-h100 --compare unaware,packet --max-events "$events" --json | head -1
python3 -c 'import json; o = json.load(open("out")); print(o["status"], [run["network"] for run in o["runs"]])'
echo "demo:"
t demo --ranks 8 -o d --max-events 20
grep -o 'interrupted at.*of 8 ranks had finished' out | sed 's/at .*:/at some time:/'
page d/report.html
t demo --ranks 8 -o d --json --max-memory 1KiB
python3 -c 'import json; print(json.load(open("out"))["status"])'
echo "plan:"
plan="plan gpt2 --machine dgx-h100:1 --batch 64"
t $plan --max-events 10
t $plan --no-prune --max-events 3000 --csv one.csv --threads 1
sed -n 2,3p out
cp out one
t $plan --no-prune --max-events 3000 --csv two.csv --threads 3
cmp out one && cmp one.csv two.csv
# The events of all plans together count, also within a wave: those of the first two as `run` counts them.
events() { orrery -q stage gpt2 --dp 8 --batch 64 --micro-batch 8 "$@" -o p.orr >/dev/null
    orrery -q run p.orr --machine dgx-h100:1 --json | sed -n 's/^ *"events": \([0-9]*\),/\1/p'; }
first=$(events --zero 2)
both=$((first + $(events --zero 3)))
for most in $((first - 1)) "$first" $((both - 1)) "$both"; do
    orrery -q plan gpt2 --machine dgx-h100:1 --batch 64 --no-prune --threads 3 --max-events "$most" 2>err >out
    sed -n '2s/.*memory, //p' out
    grep -o 'no plan was simulated' err
done
t $plan --max-events 100000000
t $plan --max-memory 1KiB
t $plan --max-memory 0B
t plan gpt2 --machine dgx-h100:1 --serve --max-events 5
# A quick computer may be done by then, and a slow one may know nothing, which is said, too.
t $plan --no-prune --max-time 2s >said
if ! grep -q 'status 0\|expired before any plan was simulated' said; then
    grep -qx 'status 130' said || echo "another status: $(cat said)"
    grep -q 'the limit of 2 s is reached: these are the best so far' said || cat said
    grep -q 'stopped after 2.00 s (--max-time)' out || cat out
fi
# All numbers of devices together have the events and the time.
t $plan --devices 2,4,8 --max-events 2500
sed -n 2,4p out
t plan llama-3-8b --machine dgx-h100:8 --devices 16,32,64 --batch 256 --no-prune --max-time 2s >said
grep -q 'status 2\|numbers of devices have no plan by then' said out || cat said out
echo "sweep:"
printf 'command: stage, run\noptions: {model: gpt2, batch: 16}\naxes: {tp: [1, 2], machine: [dgx-h100]}\n' >tp.yaml
t sweep -j 1 tp.yaml --max-events 20
t sweep -j 1 tp.yaml --max-memory 1KiB
t sweep tp.yaml
cat out
printf 'command: stage, run\noptions: {model: gpt2, batch: 16, max_events: 100000000}\naxes: {tp: [1, 2], machine: [dgx-h100]}\n' >own.yaml
t sweep -j 1 own.yaml --max-events 20
printf 'command: stage, run\noptions: {model: llama-3-70b, batch: 64, fold: off}\naxes: {tp: [1, 2, 4, 8], pp: [1, 2, 4, 8], machine: [dgx-a100, dgx-h100]}\n' >big.yaml
t sweep big.yaml --max-time 200ms | sed 's/[0-9]* of 32/some of 32/'
t sweep tp.yaml --max-time 0s
t sweep show tp.db --max-time 1s
