#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""decode_h200.py - where the time of decoding goes, on one GPU: models that no table has, with all their layers, a token after
many, replayed as a CUDA graph.

    python3 truth/measure/decode_h200.py OUT_FOLDER [--seconds 400]

Writes decode_steps.csv (time of a step after half a second of load, kernels and their sum) and h200_decode.csv (truth/kernels: time of each
operator in the graph; its shapes are those of an eager pass, whose kernels are the same)."""

import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
import steps_h200 as steps
from passes_h200 import graph_of
from steps_h200 import Out, held, profiled

BEGAN = time.perf_counter()
MODELS = {
    "llama_1b_22l": dict(kind="llama", V=32000, d=2048, L=22, heads=32, kv=4, hd=64, ff=5632, rope=1),
    "qwen_3b": dict(kind="llama", V=151936, d=2048, L=36, heads=16, kv=2, hd=128, ff=11008, rope=1, tied=1),
    "mistral_7b_16l": dict(kind="llama", V=32768, d=4096, L=16, heads=32, kv=8, hd=128, ff=14336, rope=1),
    "gpt_750m": dict(kind="gpt", V=50304, d=1536, L=24, heads=24, kv=24, hd=64, ff=6144),
    "stablelm_3b": dict(kind="llama", V=50304, d=2560, L=32, heads=32, kv=32, hd=80, ff=6912, rope=1),
    "llama_13b_10l": dict(kind="llama", V=32000, d=5120, L=10, heads=40, kv=40, hd=128, ff=13824, rope=1),
    "gpt_6b_8l": dict(kind="gpt", V=50432, d=4096, L=8, heads=32, kv=32, hd=128, ff=16384, rope=1),
    "gemma_7b_10l": dict(kind="llama", V=256000, d=3072, L=10, heads=16, kv=16, hd=256, ff=24576, rope=1, tied=1),
    "llama_d640": dict(kind="llama", V=32000, d=640, L=24, heads=10, kv=5, hd=64, ff=1728, rope=1),
    "moe_8x_1b": dict(kind="moe", V=32000, d=1280, L=12, heads=20, kv=4, hd=64, ff=2560, rope=1, experts=8, topk=2),
    "llama_30b_4l": dict(kind="llama", V=32000, d=6656, L=4, heads=52, kv=52, hd=128, ff=17920, rope=1),
    "gpt_350m": dict(kind="gpt", V=50304, d=1024, L=24, heads=16, kv=16, hd=64, ff=4096),
}
WITH_ARGUMENTS = ("aten::_cudnn_attention_forward", "aten::_efficient_attention_forward", "aten::_flash_attention_forward", "aten::sum",
                  "aten::native_layer_norm")
PLACES = ((1, 512), (1, 8192), (8, 2048), (32, 512), (32, 4096), (128, 1024))


def events_of(call):
    events = profiled(call)
    kernels = sorted((e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")), key=lambda e: e["ts"])
    owners = {}
    for e in events:
        if e.get("cat") == "cpu_op" and "External id" in e.get("args", {}):
            a = e["args"]
            owners[a["External id"]] = (e["name"], *(json.dumps(a.get(k, []), separators=(",", ":"))
                                                     for k in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")))
    return kernels, owners


def measure(model, name, c, batch, context, sums, operators):
    caches = [[torch.randn(batch, c["kv"], context, c["hd"], device="cuda", dtype=torch.bfloat16) for _ in range(2)] for _ in range(c["L"])]
    token = torch.randint(0, c["V"], (batch, 1), device="cuda")
    call = lambda: model(token, caches, context - 1)
    graph = graph_of(call)
    ms, _ = held(graph.replay, 0.4)
    for _ in range(3):
        call()
    eager, owners = events_of(call)
    rounds = 4
    replayed, _ = events_of(lambda: [graph.replay() for _ in range(rounds)])
    each = len(replayed) // rounds
    is_same = each * rounds == len(replayed) and each == len(eager) and all(a["name"] == b["name"] for a, b in zip(eager, replayed[:each]))
    us = [sum(replayed[i + j * each]["dur"] for j in range(1, rounds)) / (rounds - 1) for i in range(each)]
    gap = max(0.0, ms * 1e3 - sum(us)) / each
    shape = " ".join(f"{k}={v}" for k, v in c.items())
    sums.row(name, shape, batch, context, round(ms, 4), each, round(sum(us) / 1e3, 4), round(sum(e["dur"] for e in eager) / 1e3, 4))
    if not is_same:
        print(name, batch, context, "other kernels than eagerly", flush=True)
        return
    found = {}
    for e, time_us in zip(eager, us):
        ident = e["args"].get("External id")
        if ident in owners:
            calls, times = found.setdefault(owners[ident], (set(), []))
            calls.add(ident)
            times.append(time_us)
    for (op, shapes, types, strides, arguments), (calls, times) in found.items():
        operators.row(name, "decode", op, shapes, types.replace("c10::", ""), strides, arguments if op in WITH_ARGUMENTS else "", len(calls),
                      len(times), round(sum(times) / len(calls), 3), round(gap, 3))


def main():
    folder, limit = sys.argv[1], float(sys.argv[sys.argv.index("--seconds") + 1]) if "--seconds" in sys.argv else 400
    sums = Out(folder, "decode_steps", ["model", "shape", "batch", "context", "graph_ms", "kernels", "kernels_ms", "eager_kernels_ms"])
    operators = Out(folder, "h200_decode", ["model", "mode", "op", "shapes", "types", "strides", "arguments", "calls", "kernels", "us", "gap_us"])
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    for name, c in MODELS.items():
        steps.free()
        model, _ = steps.make(c)
        model.eval()
        for batch, context in PLACES:
            if time.perf_counter() - BEGAN > limit:
                return
            steps.free()
            if 4 * c["L"] * batch * c["kv"] * context * c["hd"] > 60 << 30:
                continue
            try:
                with torch.no_grad():
                    measure(model, name, c, batch, context, sums, operators)
            except Exception as e:
                print(name, batch, context, repr(e)[:200], flush=True)
        print(name, round(time.perf_counter() - BEGAN), flush=True)


if __name__ == "__main__":
    main()
