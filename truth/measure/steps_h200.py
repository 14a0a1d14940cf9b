#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""steps_h200.py - what a step of a language model does on one GPU that kernels alone do not say: peak bytes, kernels that
torch.compile makes, time of the host.

    python3 truth/measure/steps_h200.py OUT_FOLDER [memory] [compiled] [host] [convnext]

Needs PyTorch with CUDA.  Writes OUT_FOLDER/{memory,compiled,compiled_host,decode_host,convnext}.csv.  The models are those
of truth/tables/h200_steps.csv (memory) and of other sizes (the rest), bf16, AdamW fused, random tokens."""

import csv
import gc
import json
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

DEVICE, TYPE = "cuda", torch.bfloat16


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


class Experts(nn.Module):
    """Of a fixed capacity: a token that finds its expert full is dropped."""

    def __init__(self, c):
        super().__init__()
        self.experts, self.topk, self.width = c["experts"], c["topk"], c["ff"]
        self.router = nn.Linear(c["d"], self.experts, bias=False)
        self.up = nn.Parameter(torch.randn(self.experts, c["d"], 2 * c["ff"]) * 0.02)
        self.down = nn.Parameter(torch.randn(self.experts, c["ff"], c["d"]) * 0.02)

    def forward(self, x):
        shape, x = x.shape, x.reshape(-1, x.shape[-1])
        tokens, width = x.shape
        capacity = int(1.25 * tokens * self.topk / self.experts)
        weight, expert = torch.topk(torch.softmax(self.router(x).float(), -1), self.topk)
        weight = (weight / weight.sum(-1, keepdim=True)).to(x.dtype)
        flat = expert.view(-1)
        mine = (flat.unsqueeze(1) == torch.arange(self.experts, device=x.device)).int()
        place = (torch.cumsum(mine, 0) - 1).gather(1, flat.unsqueeze(1)).squeeze(1)
        slot = torch.where(place < capacity, flat * capacity + place, self.experts * capacity)
        copies = x.unsqueeze(1).expand(tokens, self.topk, width).reshape(-1, width)
        room = x.new_zeros(self.experts * capacity + 1, width).index_copy(0, slot, copies)
        a, b = torch.bmm(room[:-1].view(self.experts, capacity, width), self.up).split(self.width, -1)
        out = torch.bmm(F.silu(a) * b, self.down).view(-1, width)
        out = torch.cat((out, out.new_zeros(1, width))).index_select(0, slot)
        return (out * weight.view(-1, 1)).view(tokens, self.topk, width).sum(1).view(shape)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, gpt = c, c["kind"] == "gpt"
        d, q, kv = c["d"], c["heads"] * c["hd"], c["kv"] * c["hd"]
        norm = nn.LayerNorm if gpt else nn.RMSNorm
        self.norm1, self.norm2 = norm(d), norm(d)
        self.qkv, self.out = nn.Linear(d, q + 2 * kv, bias=gpt), nn.Linear(q, d, bias=gpt)
        if c["kind"] == "moe":
            self.ffn = Experts(c)
        elif gpt:
            self.ffn = nn.Sequential(nn.Linear(d, c["ff"]), nn.GELU(), nn.Linear(c["ff"], d))
        else:
            self.up, self.down = nn.Linear(d, 2 * c["ff"], bias=False), nn.Linear(c["ff"], d, bias=False)

    def attend(self, x, rope, cache):
        c, (b, s, _) = self.c, x.shape
        q, k, v = self.qkv(x).split((c["heads"] * c["hd"], c["kv"] * c["hd"], c["kv"] * c["hd"]), -1)
        q, k, v = (t.view(b, s, -1, c["hd"]).transpose(1, 2) for t in (q, k, v))
        if rope is not None:
            q, k = rotate(q, *rope), rotate(k, *rope)
        if cache is not None:
            keys, values, at = cache
            keys[:, :, at:at + s] = k
            values[:, :, at:at + s] = v
            k, v = keys[:, :, :at + s], values[:, :, :at + s]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=s > 1, enable_gqa=c["heads"] != c["kv"])
        return self.out(y.transpose(1, 2).reshape(b, s, -1))

    def forward(self, x, rope=None, cache=None):
        x = x + self.attend(self.norm1(x), rope, cache)
        h = self.norm2(x)
        if self.c["kind"] == "llama":
            a, b = self.up(h).split(self.c["ff"], -1)
            return x + self.down(F.silu(a) * b)
        return x + self.ffn(h)


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed = nn.Embedding(c["V"], c["d"])
        self.places = nn.Embedding(c["positions"], c["d"]) if c.get("positions") else None
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["L"]))
        self.norm = (nn.LayerNorm if c["kind"] == "gpt" else nn.RMSNorm)(c["d"])
        self.head = nn.Linear(c["d"], c["V"], bias=False)
        if c.get("tied"):
            self.head.weight = self.embed.weight

    def angles(self, start, s, device):
        rate = 1.0 / (10000 ** (torch.arange(0, self.c["hd"], 2, device=device).float() / self.c["hd"]))
        t = torch.arange(start, start + s, device=device).float()[:, None] * rate[None]
        t = torch.cat((t, t), -1)
        return t.cos().to(TYPE), t.sin().to(TYPE)

    def forward(self, tokens, caches=None, at=0):
        x = self.embed(tokens)
        if self.places is not None:
            x = x + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        rope = self.angles(at, tokens.shape[1], tokens.device) if self.c.get("rope") else None
        for i, block in enumerate(self.blocks):
            if self.c.get("ckpt") and self.training and torch.is_grad_enabled():
                x = checkpoint(block, x, rope, use_reentrant=False)
            else:
                x = block(x, rope, None if caches is None else (*caches[i], at))
        return self.head(self.norm(x))


def make(c):
    with torch.device(DEVICE):
        torch.set_default_dtype(TYPE)
        model = Model(c)
        torch.set_default_dtype(torch.float32)
    foreach = c.get("opt") == "adamw_foreach"
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=not foreach, foreach=foreach)


def batch_of(c):
    return torch.randint(0, c["V"], (c["batch"], c["seq"] + 1), device=DEVICE)


def step(model, optimizer, data, clip=False):
    loss = F.cross_entropy(model(data[:, :-1]).view(-1, model.c["V"]), data[:, 1:].reshape(-1))
    loss.backward()
    if clip:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def free():
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def stream_ms(call, times=8):
    """Mean of calls that are issued without waiting; and until the host has issued one."""
    call()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(times):
        call()
    issued = time.perf_counter() - began
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / times * 1e3, issued / times * 1e3


def held(call, seconds=1.0):
    """stream_ms of so many seconds, after as long a load, so that the clock is that of sustained load."""
    call()
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    times = max(4, int(seconds / (time.perf_counter() - began)))
    stream_ms(call, times)
    return stream_ms(call, times)


def profiled(call):
    """Events of one call, as the profiler exports them."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as p:
        call()
        torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        p.export_chrome_trace(f.name)
        return json.load(open(f.name, encoding="utf-8"))["traceEvents"]


class Out:
    def __init__(self, folder, name, columns):
        self.file = open(Path(folder) / f"{name}.csv", "w", newline="", encoding="utf-8")
        self.writer = csv.writer(self.file)
        self.writer.writerow(columns)

    def row(self, *values):
        self.writer.writerow(values)
        self.file.flush()


def measure_memory(folder):
    out = Out(folder, "memory", ["model", "parameter_bytes", "start", "forward_peak", "after_forward", "loss_peak",
                                 "backward_peak", "step_peak", "nograd_peak"])
    table = Path(__file__).resolve().parent.parent / "tables" / "h200_steps.csv"
    rows = list(csv.DictReader(line for line in open(table, encoding="utf-8") if not line.startswith("#")))
    for r in rows:
        if r["mode"] != "eager" or r["chip"] != "1" or r["amp"] == "1" or float(r["dropout"]):
            continue
        c = {k: int(v) for k, v in r.items() if v.isdigit() and k != "chip"} | {"kind": r["kind"], "opt": r["opt"]}
        free()
        model, optimizer = make(c)
        data, clip = batch_of(c), bool(c["clip"])
        for _ in range(2):
            step(model, optimizer, data, clip)
        free()
        peaks, peak = [], torch.cuda.max_memory_allocated
        start = torch.cuda.memory_allocated()
        logits = model(data[:, :-1]).view(-1, c["V"])
        peaks += [peak(), torch.cuda.memory_allocated()]
        torch.cuda.reset_peak_memory_stats()
        loss = F.cross_entropy(logits, data[:, 1:].reshape(-1))
        del logits
        peaks.append(peak())
        torch.cuda.reset_peak_memory_stats()
        loss.backward()
        peaks.append(peak())
        torch.cuda.reset_peak_memory_stats()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        peaks.append(peak())
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.reset_peak_memory_stats()
        with torch.no_grad():
            model(data[:, :-1])
        out.row(r["model"], sum(p.numel() * 2 for p in model.parameters()), start, *peaks, peak())
        del model, optimizer, data, loss


COMPILED = {
    "gpt_a": dict(kind="gpt", V=50304, d=1280, L=3, heads=20, kv=20, hd=64, ff=5120, batch=8, seq=1024),
    "llama_a": dict(kind="llama", V=32000, d=1024, L=3, heads=16, kv=4, hd=64, ff=2816, batch=16, seq=1024, rope=1),
    "llama_b": dict(kind="llama", V=128000, d=1536, L=2, heads=24, kv=8, hd=64, ff=4096, batch=4, seq=2048, rope=1),
    "moe_a": dict(kind="moe", V=32000, d=1024, L=2, heads=16, kv=16, hd=64, ff=2048, experts=8, topk=2, batch=8, seq=1024,
                  rope=1),
    "gpt_c": dict(kind="gpt", V=50304, d=768, L=2, heads=12, kv=12, hd=64, ff=3072, batch=16, seq=1024),
    "llama_c": dict(kind="llama", V=32000, d=768, L=2, heads=12, kv=12, hd=64, ff=2048, batch=24, seq=1024, rope=1),
    "llama_d": dict(kind="llama", V=100000, d=896, L=2, heads=14, kv=2, hd=64, ff=4864, batch=4, seq=2048, rope=1),
    "moe_c": dict(kind="moe", V=32000, d=768, L=2, heads=12, kv=12, hd=64, ff=2048, experts=8, topk=2, batch=6, seq=1024,
                  rope=1),
}


def kernels_of(call):
    """(name, dims of the operator that launched it) -> calls, microseconds."""
    events = profiled(call)
    owners, sums = {}, {}
    for e in events:
        if e.get("cat") in ("cpu_op", "user_annotation") and "External id" in e.get("args", {}):
            owners[e["args"]["External id"]] = (e["name"], str(e["args"].get("Input Dims", "")).replace(" ", ""),
                                                str(e["args"].get("Input type", "")).replace(" ", ""))
    for e in events:
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            owner = owners.get(e["args"].get("External id"), ("", "", ""))
            key = (e["name"][:140], *owner)
            n, us = sums.get(key, (0, 0.0))
            sums[key] = (n + 1, us + e["dur"])
    return sums


def compiled_model(c, mode):
    torch._dynamo.reset()
    free()
    model, optimizer = make(c)
    if mode == "blocks":
        for i in range(len(model.blocks)):
            model.blocks[i].compile()
    elif mode == "whole":
        model.compile()
    return model, optimizer, batch_of(c)


def measure_compiled(folder):
    out = Out(folder, "compiled", ["model", "mode", "kernel", "operator", "dims", "types", "calls", "us"])
    sums = Out(folder, "compiled_steps", ["model", "mode", "stream_ms", "host_ms", "busy_ms", "kernels", "peak_bytes", "compile_s"])
    others = [(name, mode) for name in ("llama_a", "gpt_a") for mode in ("whole", "eager")]
    for name, mode in [(name, "blocks") for name in COMPILED] + others:
        began = time.perf_counter()
        model, optimizer, data = compiled_model(COMPILED[name], mode)
        for _ in range(3):
            step(model, optimizer, data)
        torch.cuda.synchronize()
        took = time.perf_counter() - began
        torch.cuda.reset_peak_memory_stats()
        ms, host = stream_ms(lambda: step(model, optimizer, data))
        peak = torch.cuda.max_memory_allocated()
        found = kernels_of(lambda: step(model, optimizer, data))
        for key, (n, us) in sorted(found.items(), key=lambda item: -item[1][1]):
            out.row(name, mode, *key, n, round(us, 2))
        sums.row(name, mode, round(ms, 3), round(host, 3), round(sum(us for _, us in found.values()) / 1e3, 3),
                 sum(n for n, _ in found.values()), peak, round(took, 1))
        print(name, mode, ms, host, took, flush=True)
        del model, optimizer, data


def measure_host(folder):
    """Small tensors, so that the device waits: per layer, from models of 4 and of 12 layers."""
    out = Out(folder, "host", ["model", "what", "layers", "stream_ms", "host_ms"])
    shapes = {"gpt": dict(kind="gpt", V=1024, d=256, heads=4, kv=4, hd=64, ff=1024),
              "llama": dict(kind="llama", V=1024, d=256, heads=4, kv=4, hd=64, ff=768),
              "llama_rope": dict(kind="llama", V=1024, d=256, heads=4, kv=2, hd=64, ff=768, rope=1),
              "moe": dict(kind="moe", V=1024, d=256, heads=4, kv=4, hd=64, ff=512, experts=8, topk=2, rope=1)}
    for name, shape in shapes.items():
        for layers in (4, 12):
            c = shape | dict(L=layers, batch=2, seq=128)
            for mode in ("eager", "blocks", "whole"):
                if mode == "whole" and name != "gpt" or mode == "blocks" and name in ("moe", "llama"):
                    continue
                model, optimizer, data = compiled_model(c, mode)
                for _ in range(3):
                    step(model, optimizer, data)
                out.row(name, f"train {mode}", layers, *(round(x, 3) for x in stream_ms(lambda: step(model, optimizer, data), 30)))
                with torch.no_grad():
                    for _ in range(3):
                        model(data[:, :-1])
                    out.row(name, f"forward {mode}", layers, *(round(x, 3) for x in stream_ms(lambda: model(data[:, :-1]), 30)))
                if mode != "eager":
                    continue
                caches = [(torch.zeros(2, c["kv"], 256, 64, device=DEVICE, dtype=TYPE),) * 2 for _ in range(layers)]
                with torch.no_grad():
                    one = data[:, :1].contiguous()
                    call = lambda: model(one, caches, 200)
                    out.row(name, "decode eager", layers, *(round(x, 3) for x in stream_ms(call, 30)))
                    call = lambda: model(data[:, :128], caches, 0)
                    out.row(name, "prefill eager", layers, *(round(x, 3) for x in stream_ms(call, 30)))
        print(name, flush=True)


def measure_convnext(folder):
    import torchvision
    out = Out(folder, "convnext", ["kernel", "operator", "dims", "types", "calls", "us"])
    model = torchvision.models.convnext_tiny().to(DEVICE, TYPE)
    x = torch.randn(64, 3, 224, 224, device=DEVICE, dtype=TYPE)
    with torch.no_grad():
        model.eval()
        print("convnext eval", stream_ms(lambda: model(x)))
        model.train()
        print("convnext train", stream_ms(lambda: model(x)))
        for key, (n, us) in sorted(kernels_of(lambda: model(x)).items(), key=lambda item: -item[1][1]):
            out.row(*key, n, round(us, 2))


def main():
    folder, what = sys.argv[1], sys.argv[2:] or ["memory", "host", "compiled", "convnext"]
    for name in what:
        began = time.perf_counter()
        try:
            globals()[f"measure_{name}"](folder)
        except Exception as e:
            print(name, "failed:", repr(e)[:400], flush=True)
            import traceback
            traceback.print_exc()
        print(name, "took", time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    main()
