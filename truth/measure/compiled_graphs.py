#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compiled_graphs.py - where the time of compiled training steps goes, on one GPU: models that no table has, blocks compiled, the
step replayed as a CUDA graph under sustained load.

    python3 truth/measure/compiled_graphs.py OUT_FOLDER [--seconds 400]

Writes compiled_graphs.csv (time of a step, of its kernels, clock) and compiled_graph_kernels.csv (time of each kernel in the graph; operator and
shapes from a pass without a graph whose kernels are the same)."""

import subprocess
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
import steps_h200 as steps
from decode_h200 import events_of
from passes_h200 import graph_of
from steps_h200 import Out, held

BEGAN = time.perf_counter()
MODELS = {
    "llama_1b": dict(kind="llama", V=32000, d=2048, L=4, heads=32, kv=4, hd=64, ff=5632, batch=4, seq=2048, rope=1),
    "gpt_350m": dict(kind="gpt", V=50304, d=1024, L=6, heads=16, kv=16, hd=64, ff=4096, batch=8, seq=1024),
    "mistral_7b": dict(kind="llama", V=32768, d=4096, L=2, heads=32, kv=8, hd=128, ff=14336, batch=2, seq=4096, rope=1),
    "llama_d640": dict(kind="llama", V=32000, d=640, L=6, heads=10, kv=5, hd=64, ff=1728, batch=16, seq=1024, rope=1),
    "qwen_3b": dict(kind="llama", V=151936, d=2048, L=3, heads=16, kv=2, hd=128, ff=11008, batch=2, seq=2048, rope=1, tied=1),
    "stablelm_3b": dict(kind="llama", V=50304, d=2560, L=4, heads=32, kv=32, hd=80, ff=6912, batch=2, seq=2048, rope=1),
    "gpt_750m": dict(kind="gpt", V=50304, d=1536, L=4, heads=24, kv=24, hd=64, ff=6144, batch=4, seq=2048),
    "moe_8x_1b": dict(kind="moe", V=32000, d=1280, L=3, heads=20, kv=4, hd=64, ff=2560, rope=1, experts=8, topk=2, batch=4, seq=1024),
    "llama_13b": dict(kind="llama", V=32000, d=5120, L=2, heads=40, kv=40, hd=128, ff=13824, batch=1, seq=4096, rope=1),
    "gpt_b1": dict(kind="gpt", V=50304, d=896, L=8, heads=14, kv=14, hd=64, ff=3584, batch=1, seq=1024),
    "llama_b1": dict(kind="llama", V=32000, d=1280, L=6, heads=20, kv=20, hd=64, ff=3456, batch=1, seq=1024, rope=1),
    "llama_600m_b32": dict(kind="llama", V=64000, d=1536, L=3, heads=12, kv=12, hd=128, ff=4096, batch=32, seq=1024, rope=1),
}


def clock_of(call, seconds=0.6):
    """Clock and power at the end of a load."""
    ends = time.perf_counter() + seconds
    child = None
    while time.perf_counter() < ends:
        call()
        if child is None and ends - time.perf_counter() < 0.3:
            child = subprocess.Popen(["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits"], stdout=subprocess.PIPE, text=True)
        torch.cuda.current_stream().query()
        if torch.cuda.is_available() and time.perf_counter() < ends:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return child.communicate()[0].strip().split(", ") if child else ["", ""]


def measure(name, c, mode, sums, kernels):
    model, _, data = steps.compiled_model(c, mode)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True, capturable=True)
    call = lambda: steps.step(model, optimizer, data)
    for _ in range(3):
        call()
    graph = graph_of(call)
    ms, _ = held(graph.replay)
    clock, watts = clock_of(graph.replay)
    stream, _ = held(call, 0.5)
    plain, owners = events_of(call)
    for _ in range(max(3, int(400 / ms))):
        graph.replay()
    rounds = 4
    replayed, _ = events_of(lambda: [graph.replay() for _ in range(rounds)])
    each = len(replayed) // rounds
    is_same = each * rounds == len(replayed) and each == len(plain) and all(a["name"] == b["name"] for a, b in zip(plain, replayed[:each]))
    if not is_same and each * rounds == len(replayed):  # by name and how often it came before
        lists = {}
        for e in plain:
            lists.setdefault(e["name"], []).append(e)
        plain = [(lists.get(e["name"]) or [None]).pop(0) if lists.get(e["name"]) else None for e in replayed[:each]]
    us = [sum(replayed[i + j * each]["dur"] for j in range(1, rounds)) / (rounds - 1) for i in range(each)]
    shape = " ".join(f"{k}={v}" for k, v in c.items())
    sums.row(name, mode, shape, round(ms, 4), round(stream, 4), each, round(sum(us) / 1e3, 4), int(is_same), clock, watts)
    found = {}
    for i, e in enumerate(replayed[:each]):
        owner = owners.get(plain[i]["args"].get("External id"), ("",) * 5) if i < len(plain) and plain[i] else ("",) * 5
        key = (e["name"][:110], owner[0], owner[1], owner[2], owner[3])
        n, total = found.get(key, (0, 0.0))
        found[key] = (n + 1, total + us[i])
    for key, (n, total) in sorted(found.items(), key=lambda x: -x[1][1]):
        kernels.row(name, mode, *key, n, round(total / n, 3))


def main():
    folder, limit = sys.argv[1], float(sys.argv[sys.argv.index("--seconds") + 1]) if "--seconds" in sys.argv else 400
    sums = Out(folder, "compiled_graphs", ["model", "mode", "shape", "graph_ms", "stream_ms", "kernels", "kernels_ms", "same", "clock_mhz", "power_w"])
    kernels = Out(folder, "compiled_graph_kernels", ["model", "mode", "kernel", "op", "shapes", "types", "strides", "calls", "us"])
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    for name, c in MODELS.items():
        for mode in ("blocks", "eager"):
            if time.perf_counter() - BEGAN > limit:
                return
            try:
                measure(name, c, mode, sums, kernels)
            except Exception as e:
                print(name, mode, repr(e)[:300], flush=True)
        print(name, round(time.perf_counter() - BEGAN), flush=True)


if __name__ == "__main__":
    main()
