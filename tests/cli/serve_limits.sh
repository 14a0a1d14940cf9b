# SPDX-License-Identifier: Apache-2.0
# Estimates of serving obey what no server can escape.
cat >judge.py <<'END'
import json, subprocess, sys

def serve(*words):
    out = subprocess.run(["orrery", "serve", *words, "--json", "-q"], capture_output=True, text=True)
    return json.loads(out.stdout) if out.returncode == 0 else out.stderr.splitlines()[0]

def first(*words):
    return serve(*words)["estimate"]["first_token_mean_ps"] / 1e9

# A prompt on more context-parallel ranks is done sooner, and never more than so many times.  It is a long one: of a mesh a
# ring uses one link in seven, which eight ranks wait for if there is less to compute.
for machine, form in (("dgx-h100", "ring"), ("dgx-h100", "all-gather"), ("mi300x", "ring")):
    prompt = ["llama-3-8b", "--machine", machine, "--phase", "prefill", "-p", "16384", "--context", form]
    one = first(*prompt)
    for cp in (2, 4, 8):
        more = first(*prompt, "--cp", str(cp))
        good = 0.95 * one / cp <= more <= 2 * one / cp
        print(machine, form, "cp", cp, "ok" if good else f"{one:.1f} ms became {more:.1f}")

# A decode step reads all weights and all caches once: 2^30 bytes of caches for each 8,192 tokens in 16 bits.
def step(*words):
    d = serve("llama-3-8b", "--phase", "decode", "-b", "64", "-p", "8191", "-n", "1", *words)
    return d["estimate"]["time_ps"] / 1e12, d

rates = {"h100": 3.35e12, "h200": 4.8e12, "mi300x": 5.3e12, "l40s": 0.864e12}
for chip, rate in rates.items():
    times = {}
    for width, bytes_each in (("fp8", 1), ("bf16", 2), ("fp32", 4)):
        seconds, d = step("-w", chip, "--kv-dtype", width, "--device-memory", "300GB")
        least = (d["pools"][0]["weights_bytes"] + 64 * 8191 * 65536 * bytes_each) / rate
        times[width] = seconds
        if not least <= seconds <= 2.2 * least:
            print(chip, width, f"{seconds * 1e3:.1f} ms, at least {least * 1e3:.1f}")
    good = times["fp8"] < 0.8 * times["bf16"] and times["bf16"] < 0.7 * times["fp32"]
    print(chip, "caches of fewer bytes are read sooner", "ok" if good else times)

# Caches that move: a rank sends and receives one after another, at the rate of its link.
for split in (["--tp", "2", "--decode-tp", "2"], ["--dp", "4", "--decode-tp", "1"], ["--decode-dp", "4"], ["--tp", "2", "--decode-pp", "2"]):
    for rate in (1, 10, 100):
        d = serve("llama-3-8b", "-w", "h100", "-b", "32", "-n", "8", "--transfer-rate", f"{rate}GB/s", *split)
        senders, receivers = (p["ranks"] for p in d["pools"])
        least = d["moved_bytes"] / min(senders, receivers) / (rate * 1e9)
        if d["estimate"]["time_ps"] / 1e12 < least:
            print(split, rate, f"{d['estimate']['time_ps'] / 1e12:.3f} s, at least {least:.3f}")

# Software without graphs waits for its host, in the estimate as in the run.
for software in ("vllm", "torch-eager", "cuda-graph", "torch-compile"):
    words = ["llama-3-8b", "--machine", "dgx-h100", "--software", software, "-p", "128", "-n", "16"]
    estimate = serve(*words)["estimate"]["next_token_mean_ps"] / 1e3
    subprocess.run(["orrery", "-q", "serve", *words, "-o", "host.orr"], check=True, stdout=subprocess.DEVNULL)
    out = subprocess.run(["orrery", "-q", "run", "host.orr", "--machine", "dgx-h100", "--json"], capture_output=True, check=True)
    simulated = json.loads(out.stdout)["serving"]["next_token_mean_ns"]
    print(software, "ok" if 0.9 <= estimate / simulated <= 1.1 else f"{estimate / 1e6:.2f} and {simulated / 1e6:.2f} ms")

# The memory of a chip that was named.
for chip, size in (("l40s", 48), ("h200", 141), ("mi300x", 192), ("h100", 80)):
    print(chip, "ok" if serve("gpt2", "-w", chip, "-p", "9")["device_bytes"] == size * 10**9 else "another size")
print("mi300x holds llama-3-70b", "ok" if isinstance(serve("llama-3-70b", "-w", "mi300x", "-n", "2"), dict) else "no")

# What a chip cannot do is refused, not free.
for words in (["-w", "a100"], ["--machine", "dgx-a100"]):
    print(serve("llama-3-8b", "--dtype", "fp8", *words))
END
python3 judge.py
orrery plan llama-3-8b --machine dgx-a100 --serve --dtype fp8 2>&1
echo "== sequences longer than the model was made for"
orrery serve llama-3-8b -p 9000 -n 1 2>&1 >/dev/null
orrery serve llama-3-8b -p 8000 -n 193 2>&1 >/dev/null
