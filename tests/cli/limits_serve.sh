# SPDX-License-Identifier: Apache-2.0
# Estimates of serving end in time: --max-time of plan --serve, a limit on iterations, and no time that does not fit.
t() { echo "- $*"; (ulimit -t 60; orrery -q "$@" >out 2>err); echo "status $?"; grep -v '^Try' err; }
# Each batch takes seconds.
t plan llama-3-8b --machine dgx-h100 --serve --output 7000 --requests 8000 --max-time 200ms
grep -c . out
t plan llama-3-8b --machine dgx-h100 --serve --output 8 --requests 8 --max-time 10min
grep -c 'to reproduce' out
t plan llama-3-8b --machine dgx-h100 --serve --max-time abc
t plan llama-3-8b --machine dgx-h100 --serve --max-time -1s
# One batch is done at once, the next are not.
python3 - <<'P'
import json, signal, subprocess, time
words = "orrery -q plan gpt2 --machine dgx-h100 --serve --requests 64 --prompt 8 --output 900 --threads 1 --json --top 1000".split()
all_plans = json.loads(subprocess.run(words, capture_output=True).stdout)["plans"]
for wait in (0.2, 0.4, 0.8, 1.6, 3.2, 6.4):
    p = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    time.sleep(wait)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate()
    if not out and p.returncode == 130 and "no plan was estimated" in err or p.returncode == -signal.SIGINT:
        continue
    plans = json.loads(out)["plans"]
    known = all(plan in all_plans for plan in plans)
    said = p.returncode == 0 or (p.returncode == 130 and err == "orrery plan: interrupted: these are the best so far\n")
    print("interrupted:", "plans of the whole search" if plans and known and said else (p.returncode, plans, err))
    break
P
echo "== iterations"
t serve llama-3-8b --batch 1048576 --output-tokens 8192
printf 'arrival_us,prompt,output\n0,400000,1\n0,400000,1\n0,400000,1\n' >three.csv
t serve llama-3-8b --requests three.csv --chunk 1
t plan llama-3-8b --machine dgx-h100 --serve --output 1000000 --requests 1000
echo "== what no plan can serve"
t plan llama-3-8b --machine dgx-h100 --serve --prompt 100000000
t plan llama-3-70b --machine dgx-h100 --devices 1 --serve
echo "== times"
t serve llama-3-8b --memory-rate 1B/s
t serve llama-3-8b --tp 2 --link-rate 1B/s
t serve llama-3-8b --decode-tp 2 --transfer-rate 1B/s --json
grep -c . out
echo "== nothing is no rate and no memory"
for option in link-rate transfer-rate memory-rate; do t serve gpt2 --$option 0GB/s; done
for option in device-memory kv-memory; do t serve gpt2 --$option 0; done
echo "== options of --serve without it"
for option in prompt output requests; do t plan gpt2 --machine dgx-h100 --$option 5; done
