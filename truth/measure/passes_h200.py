#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""passes_h200.py - operators of training steps, forward passes, prompts and decoding, kernels of compiled steps, times of the
host and clocks, on one GPU; models and shapes that no table of truth/tables has.

    python3 truth/measure/passes_h200.py OUT_FOLDER [--seconds 560] [host] [host_ops] [infer] [vision] [train] [clock] [power] [compiled]
        [host_compiled]

Needs PyTorch with CUDA, torchvision and transformers.  Writes passes.csv (times of whole passes), operators.csv (who launched
which kernels in them), host.csv, host_ops.csv and clock.csv.  Parts that no time is left for are left out."""

import itertools
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent))
from steps_h200 import DEVICE, TYPE, Out, batch_of, compiled_model, free, make, profiled, step

BEGAN = time.perf_counter()
LIMIT = 560.0


def left():
    return LIMIT - (time.perf_counter() - BEGAN)


# ---- clocks ----


class Clock:
    """Clock and power every 50 ms, from nvidia-smi."""

    def __init__(self):
        self.rows = []
        self.child = subprocess.Popen(["nvidia-smi", "--query-gpu=clocks.sm,power.draw,temperature.gpu", "--format=csv,noheader,nounits",
                                       "-lms", "50"], stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            try:
                self.rows.append((time.perf_counter(), *(float(x) for x in line.split(","))))
            except ValueError:
                pass

    def between(self, start, end):
        found = [r for r in self.rows if start <= r[0] <= end]
        return tuple(round(statistics.mean(r[i] for r in found), 1) for i in (1, 2, 3)) if found else ("", "", "")


# ---- times ----


def timed(call, times=8, rounds=3):
    """Median over rounds of the mean of calls issued without waiting; and of single ones."""
    call()
    torch.cuda.synchronize()
    streams, singles = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(times):
            call()
        torch.cuda.synchronize()
        streams.append((time.perf_counter() - began) / times * 1e3)
        for _ in range(3):
            torch.cuda.synchronize()
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            call()
            b.record()
            torch.cuda.synchronize()
            singles.append(a.elapsed_time(b))
    return round(statistics.median(streams), 4), round(statistics.median(singles), 4)


def graph_of(call, warm=3):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(warm):
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def operators_of(call):
    """Kernels of one call by who launched them: op, shapes, types, strides, arguments -> calls, kernels, us, names."""
    events = profiled(call)
    owners, calls, found = {}, {}, {}
    busy = number = 0
    for e in events:
        if e.get("cat") in ("cpu_op", "user_annotation") and "External id" in e.get("args", {}):
            a = e["args"]
            texts = [json.dumps(a.get(k, []), separators=(",", ":")) for k in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")]
            if "adam" in e["name"]:  # a list of every parameter
                texts = [json.dumps(a.get("Input Dims", [])[:1], separators=(",", ":")), "", "", ""]
            owners[a["External id"]] = (e["name"], *texts)
    for e in events:
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            ident = e["args"].get("External id")
            key = owners.get(ident, (e["name"][:60], "", "", "", ""))
            n, us, names = found.get(key, (0, 0.0, {}))
            names[e["name"][:60]] = names.get(e["name"][:60], 0) + 1
            found[key] = (n + 1, us + e["dur"], names)
            calls.setdefault(key, set()).add(ident)
            busy, number = busy + e["dur"], number + 1
    return found, {k: len(v) for k, v in calls.items()}, busy / 1e3, number


class Files:
    def __init__(self, folder):
        self.passes = Out(folder, "passes", ["model", "mode", "shape", "eager_stream_ms", "eager_single_ms", "graph_stream_ms", "graph_single_ms",
                                             "busy_ms", "kernels", "clock_mhz", "power_w", "celsius"])
        self.operators = Out(folder, "operators", ["model", "mode", "op", "shapes", "types", "strides", "arguments", "calls", "kernels", "us", "names"])
        self.host = Out(folder, "host", ["model", "what", "layers", "median_ms", "least_ms", "most_ms"])
        self.ops = Out(folder, "host_ops", ["op", "nograd_us", "grad_us", "backward_us"])
        self.clocks = Out(folder, "clock", ["what", "tflops", "gbytes_s", "first_us", "sustained_us", "clock_mhz", "power_w", "celsius"])
        self.folder, self.clock = folder, Clock()

    def add_pass(self, model, mode, shape, call, eager=True, graph=True, times=8, optimizer=None):
        times_of = ["", "", "", ""]
        found, calls, busy, number = operators_of(call)
        if eager:
            times_of[0:2] = timed(call, times)
        began = time.perf_counter()
        if graph:
            try:
                for group in optimizer.param_groups if optimizer else []:
                    group["capturable"] = True
                replay = graph_of(call)
                began = time.perf_counter()
                times_of[2:4] = timed(replay.replay, times)
                del replay
            except Exception as e:
                print(model, mode, "no graph:", repr(e)[:120], flush=True)
        self.passes.row(model, mode, shape, *times_of, round(busy, 4), number, *self.clock.between(began, time.perf_counter()))
        for key, (n, us, names) in sorted(found.items(), key=lambda item: -item[1][1]):
            self.operators.row(model, mode, *key, calls[key], n, round(us / calls[key], 3),
                               " | ".join(f"{k} x{v}" for k, v in names.items())[:200])


# ---- language models ----

TRAINED = {
    "gpt_m1": dict(kind="gpt", V=32000, d=512, L=4, heads=8, kv=8, hd=64, ff=2048, batch=8, seq=512),
    "gpt_m2": dict(kind="gpt", V=50304, d=1152, L=4, heads=18, kv=18, hd=64, ff=4608, batch=4, seq=1024),
    "gpt_m3": dict(kind="gpt", V=50304, d=2560, L=3, heads=20, kv=20, hd=128, ff=10240, batch=4, seq=2048),
    "gpt_m4": dict(kind="gpt", V=50304, d=640, L=4, heads=10, kv=10, hd=64, ff=2560, batch=24, seq=1024),
    "llama_m1": dict(kind="llama", V=32000, d=640, L=4, heads=10, kv=5, hd=64, ff=1728, batch=16, seq=512, rope=1),
    "llama_m2": dict(kind="llama", V=64000, d=1280, L=4, heads=20, kv=4, hd=64, ff=3456, batch=8, seq=1024, rope=1),
    "llama_m3": dict(kind="llama", V=128256, d=3072, L=3, heads=24, kv=8, hd=128, ff=8192, batch=2, seq=4096, rope=1),
    "llama_m4": dict(kind="llama", V=32000, d=1792, L=4, heads=14, kv=14, hd=128, ff=4864, batch=8, seq=1024),
    "llama_m5": dict(kind="llama", V=49152, d=960, L=4, heads=15, kv=5, hd=64, ff=2560, batch=8, seq=2048, rope=1),
    "moe_m1": dict(kind="moe", V=32000, d=640, L=3, heads=10, kv=10, hd=64, ff=1280, experts=16, topk=2, batch=8, seq=1024, rope=1),
    "moe_m2": dict(kind="moe", V=32000, d=1536, L=2, heads=24, kv=24, hd=64, ff=2048, experts=8, topk=2, batch=4, seq=1024, rope=1),
}
SERVED = {
    "gpt_i1": dict(kind="gpt", V=50304, d=512, L=4, heads=8, kv=8, hd=64, ff=2048),
    "gpt_i2": dict(kind="gpt", V=50304, d=1024, L=4, heads=16, kv=16, hd=64, ff=4096),
    "gpt_i3": dict(kind="gpt", V=50304, d=640, L=4, heads=10, kv=10, hd=64, ff=2560),
    "llama_i1": dict(kind="llama", V=64000, d=1024, L=4, heads=16, kv=4, hd=64, ff=2816, rope=1),
    "llama_i2": dict(kind="llama", V=128256, d=3072, L=3, heads=24, kv=8, hd=128, ff=8192, rope=1),
    "llama_i3": dict(kind="llama", V=32000, d=1536, L=4, heads=12, kv=12, hd=128, ff=4096, rope=1),
    "llama_i4": dict(kind="llama", V=151936, d=768, L=4, heads=12, kv=2, hd=64, ff=4096, rope=1),
    "moe_i1": dict(kind="moe", V=32000, d=640, L=3, heads=10, kv=10, hd=64, ff=1280, experts=16, topk=2, rope=1),
}


def shape_text(c):
    return " ".join(f"{k}={v}" for k, v in c.items())


def part_train(files):
    for name, c in TRAINED.items():
        if left() < 15:
            return
        free()
        model, optimizer = make(c)
        data = batch_of(c)
        for _ in range(3):
            step(model, optimizer, data)
        files.add_pass(name, "train", shape_text(c), lambda: step(model, optimizer, data), optimizer=optimizer)
        with torch.no_grad():
            model(data[:, :-1])
            files.add_pass(name, "forward", shape_text(c), lambda: model(data[:, :-1]))
        del model, optimizer, data
        print(name, round(left()), flush=True)


def part_compiled(files):
    for name, c in TRAINED.items():
        if left() < 40:
            return
        model, optimizer, data = compiled_model(c, "blocks")
        for _ in range(3):
            step(model, optimizer, data)
        files.add_pass(name, "compile_blocks", shape_text(c), lambda: step(model, optimizer, data), optimizer=optimizer)
        del model, optimizer, data
        print(name, "compiled", round(left()), flush=True)


def part_infer(files):
    for name, c in SERVED.items():
        if left() < 15:
            return
        free()
        model, _ = make(c)
        model.eval()
        with torch.no_grad():
            for batch, context in itertools.product((1, 4, 16, 48, 96), (384, 1536, 6144)):
                caches = [tuple(torch.randn(batch, c["kv"], context + 8, c["hd"], device=DEVICE, dtype=TYPE) for _ in range(2))
                          for _ in range(c["L"])]
                one = torch.randint(0, c["V"], (batch, 1), device=DEVICE)
                call = lambda: model(one, caches, context)
                call()
                files.add_pass(name, "decode", f"{shape_text(c)} batch={batch} context={context}", call, eager=False, times=10)
                del caches
            for batch, tokens in ((1, 64), (1, 256), (1, 1024), (1, 4096), (2, 768), (12, 384)):
                caches = [tuple(torch.randn(batch, c["kv"], tokens, c["hd"], device=DEVICE, dtype=TYPE) for _ in range(2)) for _ in range(c["L"])]
                some = torch.randint(0, c["V"], (batch, tokens), device=DEVICE)
                call = lambda: model(some, caches, 0)
                call()
                files.add_pass(name, "prefill", f"{shape_text(c)} batch={batch} tokens={tokens}", call, eager=False, times=10)
                del caches
        del model
        print(name, round(left()), flush=True)


# ---- others ----


def part_vision(files):
    import torchvision
    from transformers import BertConfig, BertForMaskedLM
    pictures = [("resnet34", 64), ("resnet34", 16), ("resnet101", 48), ("wide_resnet50_2", 64), ("resnet18", 48), ("convnext_small", 32),
                ("convnext_base", 96), ("vit_l_16", 24), ("vit_b_32", 192), ("vit_l_32", 16)]
    for name, batch in pictures:
        if left() < 20:
            return
        free()
        is_vit = name.startswith("vit")
        model = getattr(torchvision.models, name)().to(DEVICE)
        model = model.to(TYPE) if is_vit else model.to(memory_format=torch.channels_last)
        x = torch.randn(batch, 3, 224, 224, device=DEVICE)
        x = x.to(TYPE) if is_vit else x.to(memory_format=torch.channels_last)
        y = torch.randint(0, 1000, (batch,), device=DEVICE)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

        def loss():
            with torch.autocast("cuda", TYPE, enabled=not is_vit, cache_enabled=False):
                return F.cross_entropy(model(x), y)

        def train():
            loss().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        def forward():
            with torch.no_grad(), torch.autocast("cuda", TYPE, enabled=not is_vit, cache_enabled=False):
                model(x)

        for _ in range(3):
            train()
        files.add_pass(f"{name}_b{batch}", "train", f"batch={batch}", train, optimizer=optimizer)
        forward()
        files.add_pass(f"{name}_b{batch}", "forward", f"batch={batch}", forward)
        model.eval()
        forward()
        files.add_pass(f"{name}_b{batch}", "eval", f"batch={batch}", forward)
        del model, optimizer, x, y
        print(name, batch, round(left()), flush=True)
    for name, width, vocab, batch, seq in (("bert_m1", 1024, 28996, 16, 384), ("bert_m2", 512, 31090, 64, 128)):
        free()
        config = BertConfig(hidden_size=width, num_hidden_layers=4, num_attention_heads=width // 64, intermediate_size=4 * width, vocab_size=vocab,
                            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        model = BertForMaskedLM(config).to(DEVICE, TYPE)
        x = torch.randint(0, vocab, (batch, seq), device=DEVICE)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

        def train_bert():
            F.cross_entropy(model(x).logits.view(-1, vocab), x.view(-1)).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        for _ in range(3):
            train_bert()
        files.add_pass(name, "train", f"d={width} V={vocab} batch={batch} seq={seq} L=4", train_bert, optimizer=optimizer)
        with torch.no_grad():
            files.add_pass(name, "forward", f"d={width} V={vocab} batch={batch} seq={seq} L=4", lambda: model(x))
        del model, optimizer


# ---- the host ----

SMALL = {"gpt": dict(kind="gpt", V=1024, d=256, heads=4, kv=4, hd=64, ff=1024),
         "llama": dict(kind="llama", V=1024, d=256, heads=4, kv=4, hd=64, ff=768),
         "llama_rope": dict(kind="llama", V=1024, d=256, heads=4, kv=2, hd=64, ff=768, rope=1),
         "moe": dict(kind="moe", V=1024, d=256, heads=4, kv=4, hd=64, ff=512, experts=8, topk=2, rope=1)}


def part_host(files):
    """Small tensors, so that the device waits; rounds lie apart, since a host's speed changes by the minute."""
    calls = {}
    for (name, shape), layers in itertools.product(SMALL.items(), (2, 6, 16)):
        c = shape | dict(L=layers, batch=2, seq=128)
        model, optimizer = make(c)
        data = batch_of(c)
        caches = [tuple(torch.zeros(2, c["kv"], 256, 64, device=DEVICE, dtype=TYPE) for _ in range(2)) for _ in range(layers)]
        one = data[:, :1].contiguous()
        calls[name, "train eager", layers] = (lambda m, o, d: lambda: step(m, o, d))(model, optimizer, data), True
        calls[name, "forward eager", layers] = (lambda m, d: lambda: m(d[:, :-1]))(model, data), False
        calls[name, "decode eager", layers] = (lambda m, x, k: lambda: m(x, k, 200))(model, one, caches), False
        calls[name, "prefill eager", layers] = (lambda m, d, k: lambda: m(d[:, :128], k, 0))(model, data, caches), False
    run_host(files, calls, 5)


def run_host(files, calls, rounds):
    found = {key: [] for key in calls}
    for i in range(rounds + 1):
        order = list(calls)
        random.Random(i).shuffle(order)
        for key in order:
            call, grads = calls[key]
            with torch.set_grad_enabled(grads):
                call()
                torch.cuda.synchronize()
                began = time.perf_counter()
                for _ in range(10):
                    call()
                torch.cuda.synchronize()
                if i:
                    found[key].append((time.perf_counter() - began) * 100)
    for key, ms in found.items():
        files.host.row(*key, round(statistics.median(ms), 4), round(min(ms), 4), round(max(ms), 4))


def part_host_ops(files):
    x = torch.randn(2, 128, 256, device=DEVICE, dtype=TYPE, requires_grad=True)
    w = torch.randn(256, 256, device=DEVICE, dtype=TYPE, requires_grad=True)
    b = torch.randn(256, device=DEVICE, dtype=TYPE, requires_grad=True)
    q = torch.randn(2, 4, 128, 64, device=DEVICE, dtype=TYPE, requires_grad=True)
    cache, new = torch.zeros(2, 4, 256, 64, device=DEVICE, dtype=TYPE), torch.zeros(2, 4, 1, 64, device=DEVICE, dtype=TYPE)

    def keep(t):
        cache[:, :, 200:201] = new
        return t

    chains = {"linear": lambda t: F.linear(t, w), "linear_bias": lambda t: F.linear(t, w, b), "layer_norm": lambda t: F.layer_norm(t, (256,), b, b),
              "rms_norm": lambda t: F.rms_norm(t, (256,), b), "gelu": F.gelu, "silu": F.silu, "add": lambda t: t + t, "mul": lambda t: t * t,
              "softmax": lambda t: torch.softmax(t, -1), "dropout": lambda t: F.dropout(t, 0.1), "cat": lambda t: torch.cat((t[..., 128:], t[..., :128]), -1),
              "copy": lambda t: t.transpose(0, 1).contiguous().transpose(0, 1), "view": lambda t: t.view(256, 256).view(2, 128, 256),
              "transpose": lambda t: t.transpose(1, 2).transpose(1, 2), "split": lambda t: t.split(128, -1)[0].expand(2, 128, 128) if 0 else torch.cat(t.split(128, -1), -1),
              "cache": keep, "neg": lambda t: -t, "sum": lambda t: t + t.sum()}
    for name, call in chains.items():
        row = []
        for mode in ("nograd", "grad"):
            times, backs = [], []
            for _ in range(9):
                torch.cuda.synchronize()
                with torch.set_grad_enabled(mode == "grad"):
                    began = time.perf_counter()
                    t = x
                    for _ in range(40):
                        t = call(t)
                    times.append((time.perf_counter() - began) / 40 * 1e6)
                    torch.cuda.synchronize()
                    if mode == "grad" and name not in ("cache",):
                        began = time.perf_counter()
                        t.sum().backward()
                        backs.append((time.perf_counter() - began) / 40 * 1e6)
            row.append(round(statistics.median(times), 2))
        files.ops.row(name, *row, round(statistics.median(backs), 2) if backs else "")
    times = {}
    for grads in (False, True):
        rounds = []
        for _ in range(9):
            torch.cuda.synchronize()
            with torch.set_grad_enabled(grads):
                began = time.perf_counter()
                t = q
                for _ in range(40):
                    t = F.scaled_dot_product_attention(t, q, q, is_causal=True)
                rounds.append((time.perf_counter() - began) / 40 * 1e6)
        times[grads] = round(statistics.median(rounds), 2)
    torch.cuda.synchronize()
    began = time.perf_counter()
    t.sum().backward()
    files.ops.row("sdpa", times[False], times[True], round((time.perf_counter() - began) / 40 * 1e6, 2))


def part_host_compiled(files):
    calls = {}
    for name, mode, layers in (("gpt", "blocks", 4), ("gpt", "blocks", 12), ("llama_rope", "blocks", 4), ("llama_rope", "blocks", 12),
                               ("moe", "blocks", 4), ("moe", "blocks", 8), ("gpt", "whole", 4), ("gpt", "whole", 12), ("llama_rope", "whole", 4),
                               ("llama_rope", "whole", 8)):
        if left() < 60:
            break
        c = SMALL[name] | dict(L=layers, batch=2, seq=128)
        made, optimizer = make(c)
        if mode == "blocks":
            for block in made.blocks:
                block.compile()
        else:
            made.compile()
        data = batch_of(c)
        for _ in range(3):
            step(made, optimizer, data)
        with torch.no_grad():
            made(data[:, :-1])
        calls[name, f"train {mode}", layers] = (lambda m, o, d: lambda: step(m, o, d))(made, optimizer, data), True
        calls[name, f"forward {mode}", layers] = (lambda m, d: lambda: m(d[:, :-1]))(made, data), False
        print(name, mode, layers, round(left()), flush=True)
    run_host(files, calls, 5)


POWERED = {
    "gpt_p1": dict(kind="gpt", V=50304, d=1024, L=8, heads=16, kv=16, hd=64, ff=4096, batch=16, seq=1024),
    "gpt_p2": dict(kind="gpt", V=50304, d=2560, L=3, heads=20, kv=20, hd=128, ff=10240, batch=4, seq=2048),
    "llama_p1": dict(kind="llama", V=32000, d=640, L=8, heads=10, kv=10, hd=64, ff=1792, batch=48, seq=1024),
    "llama_p2": dict(kind="llama", V=128256, d=1024, L=8, heads=16, kv=4, hd=64, ff=4096, batch=8, seq=2048, rope=1),
    "llama_p3": dict(kind="llama", V=32000, d=1536, L=6, heads=12, kv=12, hd=128, ff=4096, batch=12, seq=1024, rope=1),
    "llama_p4": dict(kind="llama", V=64000, d=3072, L=3, heads=24, kv=8, hd=128, ff=8192, batch=4, seq=2048, rope=1),
    "moe_p1": dict(kind="moe", V=32000, d=1024, L=4, heads=16, kv=16, hd=64, ff=2048, experts=8, topk=2, batch=8, seq=1024, rope=1),
}


def held(files, name, mode, shape, call):
    """A replayed step after rest, and over seconds: what the power cap does to it."""
    replay = graph_of(call).replay
    replay()
    torch.cuda.synchronize()
    rested, held_ms = [], []
    for _ in range(7):
        time.sleep(0.25)
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        replay()
        b.record()
        torch.cuda.synchronize()
        rested.append(a.elapsed_time(b))
    time.sleep(0.3)
    began = time.perf_counter()
    while time.perf_counter() - began < 2.0:
        t0 = time.perf_counter()
        for _ in range(4):
            replay()
        torch.cuda.synchronize()
        held_ms.append((time.perf_counter() - t0) * 250)
    end = time.perf_counter()
    first = statistics.mean(held_ms[:max(1, round(0.15 / (4e-3 * held_ms[0])))])
    last = statistics.mean(held_ms[len(held_ms) // 2:])
    files.power.row(name, mode, shape, round(statistics.median(rested), 4), round(first, 4), round(last, 4), *files.clock.between(end - 0.9, end))


def part_power(files):
    files.power = Out(files.folder, "power", ["model", "mode", "shape", "rested_ms", "first_ms", "held_ms", "clock_mhz", "power_w", "celsius"])
    for name, c in POWERED.items():
        for mode in ("eager", "blocks"):
            if left() < 30:
                return
            model, optimizer, data = compiled_model(c, mode)
            for group in optimizer.param_groups:
                group["capturable"] = True
            for _ in range(3):
                step(model, optimizer, data)
            held(files, name, "train" if mode == "eager" else "compile_blocks", shape_text(c), lambda: step(model, optimizer, data))
            if mode == "eager":
                with torch.no_grad():
                    held(files, name, "forward", shape_text(c), lambda: model(data[:, :-1]))
            del model, optimizer, data
            print(name, mode, round(left()), flush=True)


def part_clock(files):
    """Products beside copies, in every share: what the clock falls to, and how much longer both take then."""
    n = 1 << 27
    a, b = torch.randn(8192, 4096, device=DEVICE, dtype=TYPE), torch.randn(4096, 4096, device=DEVICE, dtype=TYPE)
    x, y = torch.randn(n, device=DEVICE, dtype=TYPE), torch.empty(n, device=DEVICE, dtype=TYPE)
    for products, copies in ((16, 0), (12, 1), (8, 1), (8, 2), (8, 4), (4, 4), (4, 8), (2, 8), (0, 8)):
        if left() < 10:
            return

        def mix():
            for i in range(max(products, copies)):
                if i < products:
                    torch.mm(a, b)
                if i < copies:
                    torch.add(x, 1.0, out=y)

        time.sleep(0.8)
        graph = graph_of(mix)
        time.sleep(0.8)
        times = []
        began = time.perf_counter()
        while time.perf_counter() - began < 2.0:
            t0 = time.perf_counter()
            for _ in range(3):
                graph.replay()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - t0) / 3 * 1e6)
        end = time.perf_counter()
        last = times[len(times) * 2 // 3:]
        us = statistics.mean(last)
        files.clocks.row(f"{products} products, {copies} passes", round(products * 2 * 8192 * 4096 * 4096 / us / 1e6, 1),
                         round(copies * 4 * n / us / 1e3, 1), round(statistics.mean(times[:3]), 2), round(us, 2),
                         *files.clock.between(end - 0.7, end))
        del graph


def main():
    global LIMIT
    words = sys.argv[2:]
    if "--seconds" in words:
        at = words.index("--seconds")
        LIMIT = float(words[at + 1])
        del words[at:at + 2]
    files = Files(sys.argv[1])
    for name in words or ["host", "host_ops", "infer", "vision", "train", "clock", "power", "compiled", "host_compiled"]:
        began = time.perf_counter()
        try:
            globals()[f"part_{name}"](files)
        except Exception:
            import traceback
            traceback.print_exc()
        print(name, "took", round(time.perf_counter() - began, 1), "left", round(left()), flush=True)
    files.clock.child.terminate()


if __name__ == "__main__":
    main()
