# SPDX-License-Identifier: Apache-2.0
# Collectives on machines with a torus of links: run and nccl-tests agree, folded or not; no link is asked for more than its
# rate; a pod whose axes wrap is faster than a mesh; a slow link slows them down.
python3 - <<'P'
import json, subprocess

def out(*a):
    return subprocess.run(["orrery", *a], capture_output=True, text=True, check=True).stdout

def run(trace, machine, *more):
    return json.loads(out("-q", "run", trace, "--machine", machine, "--json", *more))

# machine, ranks, lengths of the axes, GB/s of a link, whether each is a ring
cases = [
    ("tpu-v5p", 64, [4, 4, 4], 100, True),
    ("tpu-v5p", 32, [4, 4, 2], 100, False),  # smaller than a cube
    ("tpu-v4", 192, [12, 4, 4], 50, True),
    ("tpu-v4", 48, [3, 4, 4], 50, False),  # 3 is no multiple of 4
    ("tpu-v5e", 16, [4, 4], 50, False),
    ("tpu-v5e", 256, [16, 16], 50, True),
    ("trainium2", 16, [4, 4], 128, True),
    ("trainium2", 8, [4, 2], 128, None),
]
for machine, ranks, axes, rate, rings in cases:
    shapes = json.loads(out("machine", "show", f"{machine}:{max(1, ranks // {'trainium2': 16}.get(machine, 4))}", "--json"))["dimensions"]
    if rings is not None:
        assert sorted(d["ranks"] for d in shapes) == sorted(axes), shapes
        assert all((d["shape"] == "Ring") == rings or d["ranks"] == 2 for d in shapes), shapes
    words = []
    for op, test in (("all_reduce", "all_reduce"), ("all_gather", "all_gather"), ("reduce_scatter", "reduce_scatter"),
                     ("all_to_all", "alltoall")):
        for size in (1 << 20, 1 << 30):
            own = size // ranks if op == "all_gather" else size
            out("-q", "gen", op, "--ranks", str(ranks), "--comm-size", str(own), "-o", "c.orr")
            ns = run("c.orr", machine)["simulated_ns"]
            whole = run("c.orr", machine, "--fold", "off")["simulated_ns"]
            rows = json.loads(out("nccl-tests", "-m", machine, "-n", str(ranks), "--op", test, "-b", str(size), "-e", str(size), "--json"))
            us = rows["rows"][0]["time_us"]
            assert ns == whole and abs(ns / 1000 - us) < 0.02 + us / 1000, (op, size, ns, whole, us)
            links = sum(1 if n == 2 else 2 for n in axes)
            least = (2 if op == "all_reduce" else 1) * size * (1 - 1 / ranks) / (links * rate)
            assert op == "all_to_all" or ns >= least, (op, size, ns, least)
            words.append(f"{size / ns:.1f}")
    print(machine, ranks, "GB/s:", *words)

# Of a group on one axis: that axis' two links, whatever the others do.  Steps with fold and without are the same.
out("-q", "stage", "llama-3-8b", "--layers", "2", "--tp", "4", "--dp", "8", "--pp", "2", "--batch", "32", "--seq", "2048", "-o", "step.orr")
for machine in ("tpu-v5p", "tpu-v5e", "trainium2"):
    ns = [run("step.orr", machine, "--fold", fold)["simulated_ns"] for fold in ("auto", "off", "verify")]
    print(machine, "fold:", "the same" if len(set(ns)) == 1 else ns)

# serve estimates what run measures.
for machine in ("tpu-v5p", "trainium2"):
    text = out("-q", "serve", "llama-3-70b", "--tp", "8", "--machine", machine, "--prompt-tokens", "2048", "-n", "8", "-o", f"{machine}.orr", "--json")
    estimate = json.loads(text)["estimate"]["time_ps"] / 1000
    ns = run(f"{machine}.orr", machine)["simulated_ns"]
    print(machine, "serve:", "within 1 %" if abs(estimate / ns - 1) < 0.01 else (estimate, ns))

out("-q", "gen", "all_reduce", "--ranks", "64", "--comm-size", str(1 << 30), "-o", "c.orr")
with open("slow.yml", "w") as f:
    f.write("links: [{from: 0, to: 1, bandwidth: 0.5}]\n")
fast, slow = run("c.orr", "tpu-v5p")["simulated_ns"], run("c.orr", "tpu-v5p", "--ranks-file", "slow.yml")["simulated_ns"]
print("a link at half its rate:", "about twice" if 1.9 < slow / fast < 2.3 else (fast, slow))
for network in ("unaware", "aware"):
    print(network, "by messages:", "slower" if run("c.orr", "tpu-v5p", "--network", network)["simulated_ns"] > fast else "faster")
none = run("c.orr", "tpu-v5p,collectives=none")["simulated_ns"]
print("collectives=none:", "slower" if none > 2 * fast else "no difference")
P
orrery nccl-tests -m tpu-v5p -n 64 --algorithm ring
echo "status $?"
printf 'chip: h100\ndevices: 8\ncollectives: torus\nscale_up: {kind: switch, bandwidth: 1GB/s}\n' >odd.yml
orrery machine show odd.yml
echo "status $?"
printf 'chip: h100\ndevices: 8\nscale_up: {kind: switch, bandwidth: 1GB/s, wrap: 4}\n' >odd.yml
orrery machine show odd.yml
echo "status $?"
