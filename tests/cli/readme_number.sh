# SPDX-License-Identifier: Apache-2.0
# What the README says of the demo is what the demo says now, in terminal and page, and its MFU lies where Llama 3 on H100 was published.
orrery demo >demo.txt 2>&1
python3 - "$ORR_ROOT/README.md" <<'PY'
import json, re, sys
readme = " ".join(open(sys.argv[1]).read().split())
step, low, high = re.search(r"H100: ([\d.]+) s \(90 % interval: ([\d.]+) to ([\d.]+) s\)", readme).groups()
mfu, peak = re.search(r"MFU ([\d.]+) % of ([\d.]+) TFLOP/s", readme).groups()
text = open("demo.txt").read()
for words in (f"step {step} s ({low}-{high})", f"MFU {mfu} % of {peak} TFLOP/s"):
    print("the demo says so" if words in text else f"the demo does not say {words}: " + re.search(r"step .*\n.*", text).group())
page = open("orrery-demo/report.html").read()
head = json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S).group(1))["runs"][0]["headline"]
same = [f"{head['time_ns'] / 1e9:.2f}", f"{head['time_low_ns'] / 1e9:.2f}", f"{head['time_high_ns'] / 1e9:.2f}", f"{100 * head['mfu']:.1f}"]
print("the page says so, with its interval" if same == [step, low, high, mfu] else f"the page: {same}")
print("as published" if 0.36 <= head["mfu"] <= 0.45 else head["mfu"])
PY
