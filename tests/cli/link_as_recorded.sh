# SPDX-License-Identifier: Apache-2.0
# With the host's times as recorded a replay takes as long as the recorded step: what a thread did
# between its operators counts, what it waited for elsewhere does not count twice.
cat >judge.py <<'END'
import gzip, json, re, subprocess, sys

def replay(host, device, *words):
    subprocess.run(["orrery", "-q", "link", host, device, "-o", "step.orr", *words], check=True)
    out = subprocess.run(["orrery", "-q", "run", "step.orr", "--machine", "hgx-h200", "--json"], capture_output=True, check=True)
    return json.loads(out.stdout)["simulated_ns"]

def recorded(path):
    wanted = ("cpu_op", "kernel", "gpu_memcpy", "gpu_memset")
    with gzip.open(path) as f:
        spans = [(e["ts"], e["ts"] + e["dur"]) for e in json.load(f)["traceEvents"] if e.get("ph") == "X" and e.get("cat") in wanted]
    return (max(b for _, b in spans) - min(a for a, _ in spans)) * 1e3

for name in sys.argv[1:]:
    files = [f"{name}_host_et.json.gz", f"{name}_kineto.json.gz"]
    ratio = replay(*files, "--host-scale", "1") / recorded(files[1])
    print("replayed over recorded:", "ok" if 0.97 <= ratio <= 1.01 else f"{ratio:.3f}")
    half = replay(*files, "--host-scale", "0.5") / recorded(files[1])
    print("half of the host's time:", "ok" if 0.48 <= half <= 0.62 else f"{half:.3f}")
END
python3 judge.py "$ORR_GOLDEN/h200/tiny" "$ORR_GOLDEN/h200/gpt2_124m"
orrery -q link --host-scale 1 "$ORR_GOLDEN/h200/tiny_host_et.json.gz" "$ORR_GOLDEN/h200/tiny_kineto.json.gz" -o tiny.orr
orrery check tiny.orr
echo "== it is no operator"
orrery info tiny.orr | grep 'no operators' | awk '{print $6}'
echo "== a host trace alone has no times, and says so"
orrery link "$ORR_GOLDEN/h200/tiny_host_et.json.gz" -o alone.orr 2>&1
