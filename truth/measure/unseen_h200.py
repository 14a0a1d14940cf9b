#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""unseen_h200.py - steps of models that no other file of ours has, in the columns of truth/tables/h200_steps.csv:
`unseen_h200.py [steps|compiled|decode|later] > h200_unseen.csv` on a machine with a GPU.  Each is replayed as a CUDA graph, run
eagerly, and run forward without gradients; some of fewer layers, compiled; some decode a token after many, as a CUDA graph.
Held for a second before it is timed, so that the clock is that of sustained load."""

import sys

import torch

import steps_h200 as steps
from passes_h200 import graph_of
from steps_h200 import held

MODELS = {
    "smollm2_360m": dict(kind="llama", V=49152, d=960, L=32, heads=15, kv=5, hd=64, ff=2560, batch=4, seq=2048, rope=1, tied=1),
    "qwen2_1_5b": dict(kind="llama", V=151936, d=1536, L=28, heads=12, kv=2, hd=128, ff=8960, batch=2, seq=2048, rope=1, tied=1),
    "gemma_2b": dict(kind="llama", V=256000, d=2048, L=18, heads=8, kv=1, hd=256, ff=16384, batch=2, seq=2048, rope=1, tied=1),
    "olmo_1b": dict(kind="llama", V=50304, d=2048, L=16, heads=16, kv=16, hd=128, ff=8192, batch=4, seq=2048, rope=1, tied=1),
    "llama_3b": dict(kind="llama", V=128256, d=3072, L=28, heads=24, kv=8, hd=128, ff=8192, batch=2, seq=4096, rope=1, tied=1),
    "llama_70b_2l": dict(kind="llama", V=32000, d=8192, L=2, heads=64, kv=8, hd=128, ff=28672, batch=1, seq=4096, rope=1),
    "llama_7b_4l_long": dict(kind="llama", V=32000, d=4096, L=4, heads=32, kv=32, hd=128, ff=11008, batch=1, seq=16384, rope=1),
    "pythia_410m": dict(kind="gpt", V=50304, d=1024, L=24, heads=16, kv=16, hd=64, ff=4096, batch=16, seq=512, rope=1),
    "bloom_560m": dict(kind="gpt", V=250880, d=1024, L=24, heads=16, kv=16, hd=64, ff=4096, batch=4, seq=1024, tied=1),
    "opt_2_7b": dict(kind="gpt", V=50272, d=2560, L=32, heads=32, kv=32, hd=80, ff=10240, batch=2, seq=2048, positions=2048, tied=1),
    "phi_1_3b": dict(kind="gpt", V=51200, d=2048, L=24, heads=32, kv=32, hd=64, ff=8192, batch=4, seq=2048, rope=1),
    "moe_16x_2b": dict(kind="moe", V=32000, d=1024, L=8, heads=16, kv=4, hd=64, ff=2048, batch=4, seq=1024, rope=1, experts=16, topk=2),
}
# Measured when decoding and compiled steps had been fitted again, with the first ones' errors in view.
LATER = {
    "llama_160m": dict(kind="llama", V=32000, d=768, L=12, heads=12, kv=12, hd=64, ff=3072, batch=8, seq=1024, rope=1),
    "danube_1_8b": dict(kind="llama", V=32000, d=2560, L=24, heads=32, kv=8, hd=80, ff=6912, batch=2, seq=2048, rope=1),
    "gpt_1_5b": dict(kind="gpt", V=50304, d=1600, L=24, heads=25, kv=25, hd=64, ff=6400, batch=4, seq=1024),
    "qwen_1_8b": dict(kind="llama", V=151936, d=2048, L=24, heads=16, kv=16, hd=128, ff=5504, batch=1, seq=2048, rope=1),
    "yi_6b_12l": dict(kind="llama", V=64000, d=4096, L=12, heads=32, kv=4, hd=128, ff=11008, batch=1, seq=4096, rope=1),
    "nemo_12b_8l": dict(kind="llama", V=131072, d=5120, L=8, heads=32, kv=8, hd=128, ff=14336, batch=2, seq=2048, rope=1),
}
COLUMNS = ["chip", "model", "mode", "kind", "V", "d", "L", "heads", "kv", "hd", "ff", "batch", "seq", "rope", "positions", "tied",
           "experts", "topk", "dropout", "ckpt", "amp", "opt", "clip", "step_ms_median", "stream_ms", "host_ms_median",
           "profiled_gpu_busy_ms", "profiled_kernels", "peak_mem_bytes", "small_ms"]


def graph_of_step(model, data):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True, capturable=True)
    call = lambda: steps.step(model, optimizer, data)
    return graph_of(call)


def say(name, c, mode, ms, host):
    values = {**{k: c.get(k, 0) for k in COLUMNS}, "chip": 3, "model": name, "mode": mode, "dropout": "0.0", "opt": "adamw_fused",
              "step_ms_median": "", "stream_ms": f"{ms:.3f}", "host_ms_median": f"{host:.3f}", "profiled_gpu_busy_ms": "",
              "profiled_kernels": "", "peak_mem_bytes": torch.cuda.max_memory_allocated(), "small_ms": c.get("small", "")}
    print(",".join(str(values[k]) for k in COLUMNS), flush=True)


def measure_compiled(of, names):
    for name, layers in names:
        c = {**of[name], "L": layers}
        model, optimizer, data = steps.compiled_model(c, "blocks")
        for _ in range(3):
            steps.step(model, optimizer, data)
        say(f"{name}_{layers}l", c, "compile_blocks", *held(lambda: steps.step(model, optimizer, data)))
        del optimizer
        graph = graph_of_step(model, data)
        say(f"{name}_{layers}l", c, "compile_graph", *held(graph.replay))
        del graph, model, data


def measure_decode(of, names, places):
    print("model,phase,mode,kind,V,d,L,heads,kv,hd,ff,rope,experts,topk,batch,tokens,context,step_ms_median,stream_ms,host_ms_median")
    for name in names:
        c = of[name]
        steps.free()
        model, _ = steps.make(c)
        model.eval()
        for batch, context in places:
            steps.free()
            caches = [[torch.randn(batch, c["kv"], context, c["hd"], device="cuda", dtype=torch.bfloat16) for _ in range(2)]
                      for _ in range(c["L"])]
            token = torch.randint(0, c["V"], (batch, 1), device="cuda")
            with torch.no_grad():
                call = lambda: model(token, caches, context - 1)
                graph = graph_of(call, 1)
            ms, host = held(graph.replay, 0.5)
            print(",".join(str(x) for x in (name, "decode", "graph", *(c.get(k, 0) for k in ("kind", "V", "d", "L", "heads", "kv",
                  "hd", "ff", "rope", "experts", "topk")), batch, 1, context, "", f"{ms:.4f}", f"{host:.4f}")), flush=True)
            del graph, caches


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else "steps"
    if what == "compiled":
        return measure_compiled(MODELS, (("smollm2_360m", 8), ("pythia_410m", 8), ("olmo_1b", 4), ("llama_3b", 4), ("opt_2_7b", 4),
                                         ("gemma_2b", 4), ("moe_16x_2b", 4), ("phi_1_3b", 4)))
    if what == "decode":
        return measure_decode(MODELS, ("smollm2_360m", "qwen2_1_5b", "gemma_2b", "olmo_1b", "llama_3b", "llama_70b_2l", "pythia_410m", "phi_1_3b"),
                              ((1, 1024), (1, 6144), (16, 3072), (64, 1024)))
    if what == "later":
        measure_decode(LATER, LATER, ((1, 2048), (4, 1024), (32, 2048), (96, 512)))
        return measure_compiled(LATER, (("llama_160m", 8), ("danube_1_8b", 4), ("gpt_1_5b", 4), ("qwen_1_8b", 4), ("yi_6b_12l", 3),
                                        ("nemo_12b_8l", 2)))
    print(f"# One {torch.cuda.get_device_name()}, PyTorch {torch.__version__}; columns of h200_steps.csv; stream_ms after a second of load")
    print(",".join(COLUMNS))
    for name, c in MODELS.items():
        try:
            steps.free()
            torch.manual_seed(0)
            model, optimizer = steps.make(c)
            small = {**c, "batch": 1, "seq": 16}
            small_data = steps.batch_of(small)
            model.c = small
            little = held(lambda: steps.step(model, optimizer, small_data), 0.3)[0]
            model.c = c
            data = steps.batch_of(c)
            steps.free()
            say(name, {**c, "small": f"{little:.3f}"}, "eager", *held(lambda: steps.step(model, optimizer, data)))
            steps.free()
            model.eval()
            with torch.no_grad():
                say(name, c, "forward", *held(lambda: model(data[:, :-1])))
            model.train()
            del optimizer
            steps.free()
            graph = graph_of_step(model, data)
            say(name, c, "graph", *held(graph.replay))
            del graph, model, data
        except Exception as e:  # a model more or less
            print(f"# {name}: {e!r}"[:200].replace("\n", " "), flush=True)


if __name__ == "__main__":
    sys.exit(main())
