#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compiled_host.py - the host's time of eager and compiled steps and forward passes, side by side on one host: its speed changes by
the minute and between machines, but less the ratio of two steps that take turns.

    python3 truth/measure/compiled_host.py OUT_FOLDER [--seconds 300] [--host NUMBER] [operators] [optimizers] [models] [brief]

Needs PyTorch with CUDA.  Writes OUT_FOLDER/{calls,turns,wrappers,operators,optimizers,probes}.csv.  No model is in truth/tables.

calls: each round calls every form of a model three times in a new order (the first does not count): eager, its blocks compiled, the whole
model compiled, and the eager step of 16 tokens that truth.py takes a host's speed from; stream_ms with the wait for the device, host_ms
until it is issued, and what of that the parts of a step take; loop_us: a loop of the interpreter just before, which shows whether the
core is slow at the moment.  turns: medians and lowest fifths of them; graphs: replays.
wrappers: what the code that torch.compile generates calls, by compiled function (forward, backward, without gradients).
probes: through the run, a loop of the interpreter, an operator, a backward pass of one operator, and the same small step."""

import random
import re
import statistics
import sys
import time
import traceback
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent))
from steps_h200 import DEVICE, TYPE, Out, batch_of, free, make

BEGAN, LIMIT, HOST = time.perf_counter(), 300.0, "1"
ROUNDS, MODEL_S = (8, 40), 9.0
PARTS = ("forward", "loss", "backward", "update", "clear")

# pairs: two layers are compiled as one block; bare: no biases beside those of norms; whole: also compiled whole; graph: also replayed
MODELS = {
    "gpt_s": dict(kind="gpt", V=4096, d=384, heads=6, kv=6, hd=64, ff=1536, batch=2, seq=128, layers=(3, 8), whole=1, graph=1),
    "llama_r": dict(kind="llama", V=8192, d=512, heads=8, kv=2, hd=64, ff=1408, batch=1, seq=512, rope=1, layers=(3, 8), whole=1, graph=1),
    "gpt_b1": dict(kind="gpt", V=16384, d=640, heads=10, kv=10, hd=64, ff=2560, batch=1, seq=768, layers=(3, 9)),
    "llama_s": dict(kind="llama", V=4096, d=384, heads=6, kv=6, hd=64, ff=1024, batch=2, seq=128, layers=(4, 10)),
    "gpt_bare": dict(kind="gpt", V=4096, d=320, heads=5, kv=5, hd=64, ff=1280, batch=2, seq=128, layers=(4, 10), bare=1),
    "gpt_pairs": dict(kind="gpt", V=4096, d=384, heads=6, kv=6, hd=64, ff=1536, batch=2, seq=160, layers=(4, 10), pairs=1),
    "llama_pairs": dict(kind="llama", V=8192, d=512, heads=8, kv=2, hd=64, ff=1408, batch=1, seq=320, rope=1, layers=(4, 10), pairs=1),
    "moe_s": dict(kind="moe", V=4096, d=384, heads=6, kv=6, hd=64, ff=768, experts=4, topk=2, batch=2, seq=128, rope=1, layers=(3, 7)),
    "gpt_b8": dict(kind="gpt", V=8192, d=512, heads=8, kv=8, hd=64, ff=2048, batch=8, seq=192, layers=(3, 9)),
    "llama_b8": dict(kind="llama", V=8192, d=640, heads=10, kv=5, hd=64, ff=1792, batch=8, seq=128, rope=1, layers=(3, 9)),
    "llama_deep": dict(kind="llama", V=4096, d=256, heads=4, kv=2, hd=64, ff=704, batch=1, seq=192, rope=1, layers=(8, 22)),
}


def left():
    return LIMIT - (time.perf_counter() - BEGAN)


# ---- what compiled code calls ----


class Wrappers:
    """Counts the calls in the Python code that the compiler writes for each compiled function."""

    WHAT = {"triton": r"\.run\(", "product": r"extern_kernels\.\w*mm\w*\(", "extern": r"extern_kernels\.(?!\w*mm)\w+\(",
            "operator": r"torch\.ops\.\w+\.\w+", "buffer": r"empty_strided_cuda\(", "checked": r"assert_size_stride\("}

    def __init__(self):
        from torch._inductor.graph import GraphLowering
        self.found = []
        GraphLowering.save_output_code = self.take

    def take(self, text):
        text = text[:text.index("def benchmark_compiled_module")] if "def benchmark_compiled_module" in text else text
        self.found.append({k: len(re.findall(v, text)) for k, v in self.WHAT.items()})


# ---- models ----


class Pair(nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x, rope=None, cache=None):
        return self.second(self.first(x, rope, None), rope, None)


class Form:
    """A model and how it runs: eager, blocks or whole (compiled)."""

    def __init__(self, c, form):
        self.c = c
        self.model, _ = make(c)
        if c.get("bare"):
            for module in self.model.blocks.modules():
                if isinstance(module, nn.Linear):
                    module.bias = None
        if c.get("pairs"):
            b = self.model.blocks
            self.model.blocks = nn.ModuleList(Pair(b[i], b[i + 1]) for i in range(0, len(b), 2))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        for block in self.model.blocks if form == "blocks" else ():
            block.compile()
        if form == "whole":
            self.model.compile()
        self.data, self.few = batch_of(c), batch_of(c | dict(batch=1, seq=16))
        self.tensors = len(list(self.model.parameters()))

    def train(self, data, taken):
        """One step; adds what each part keeps the host to taken."""
        at = time.perf_counter()
        logits = self.model(data[:, :-1])
        now = time.perf_counter()
        taken[0] += now - at
        loss = F.cross_entropy(logits.view(-1, self.c["V"]), data[:, 1:].reshape(-1))
        at = time.perf_counter()
        taken[1] += at - now
        loss.backward()
        now = time.perf_counter()
        taken[2] += now - at
        self.optimizer.step()
        at = time.perf_counter()
        taken[3] += at - now
        self.optimizer.zero_grad(set_to_none=True)
        taken[4] += time.perf_counter() - at

    def call(self, what):
        """As a function of the list of parts."""
        data = self.few if what.endswith("small") else self.data
        if what.startswith("train"):
            return lambda taken: self.train(data, taken)
        return lambda taken: self.model(data[:, :-1])


def loop_us():
    began, d = time.perf_counter(), {}
    for i in range(400):
        d[i & 63] = (i, str(i & 7))
    return (time.perf_counter() - began) * 1e6


def timed(call, grads, times):
    """Mean of calls: with the wait for the device, until all are issued, and by part."""
    taken = [0.0] * len(PARTS)
    with torch.set_grad_enabled(grads):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(times):
            call(taken)
        issued = time.perf_counter() - began
        torch.cuda.synchronize()
    return [x / times * 1e3 for x in (time.perf_counter() - began, issued, *taken)]


def graph_of(call):
    """Its replay, as a function of the list of parts."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call([0.0] * len(PARTS))
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call([0.0] * len(PARTS))
    return lambda taken: graph.replay()


def warm(form, what, files, name, wrappers):
    """Compiles where needed, and returns the milliseconds of a call; None: it failed."""
    grads, known, layers = what.startswith("train"), len(wrappers.found), form.c["L"]
    began = time.perf_counter()
    try:
        call = form.call(what)
        for _ in range(3):
            timed(call, grads, 1)
        took = time.perf_counter() - began
        for i, counts in enumerate(wrappers.found[known:]):
            files.wrappers.row(HOST, name, what, layers, form.tensors, i, *counts.values(), round(took, 1))
        return timed(call, grads, 2)[0]
    except Exception as e:
        print(name, what, layers, "failed:", repr(e)[:300], flush=True)
        return None


def measure_model(name, c, files, wrappers, has_whole):
    torch._dynamo.reset()
    free()
    entries, eager = {}, []
    whats = {"eager": ("train eager", "forward eager", "train small", "forward small"), "blocks": ("train blocks", "forward blocks"),
             "whole": ("train whole", "forward whole")}
    for layers in c["layers"]:
        for kind in ("eager", "blocks", "whole"):
            if kind == "whole" and not (c.get("whole") and has_whole and left() > 90):
                continue
            form = Form(c | dict(L=layers), kind)
            eager += [form] if kind == "eager" else []
            for what in whats[kind]:
                ms = warm(form, what, files, name, wrappers)
                if ms:
                    entries[what, layers] = form
    found, began = {key: [] for key in entries}, time.perf_counter()
    for i in range(ROUNDS[1]):
        if i >= ROUNDS[0] and time.perf_counter() - began > MODEL_S:
            break
        order = list(entries)
        random.Random(i).shuffle(order)
        for what, layers in order:
            call, grads = entries[what, layers].call(what), what.startswith("train")
            timed(call, grads, 1)
            for _ in range(2):
                row = [loop_us(), *timed(call, grads, 1)]
                found[what, layers].append(row)
                files.calls.row(HOST, name, what, layers, i, *(round(x, 3) for x in row))
    for (what, layers), rows in found.items():
        columns = list(zip(*rows))
        files.turns.row(HOST, name, what, layers, len(rows), *(round(statistics.median(x), 3) for x in columns),
                        *(round(sorted(x)[len(x) // 5], 3) for x in columns))
    for form in eager if c.get("graph") else ():
        for group in form.optimizer.param_groups:
            group["capturable"] = True
        for phase in ("train", "forward"):
            try:
                with torch.set_grad_enabled(phase == "train"):
                    replay = graph_of(form.call(f"{phase} graph"))
                for i in range(3):
                    timed(replay, False, 1)
                    files.calls.row(HOST, name, f"{phase} graph", form.c["L"], i, "", *(round(x, 3) for x in timed(replay, False, 20)))
                del replay
            except Exception as e:
                print(name, phase, "graph failed:", repr(e)[:200], flush=True)


# ---- parts of the run ----


def stolen():
    """Ticks that the hypervisor gave to others while a core of ours had work, and all ticks of work, since the start."""
    with open("/proc/stat", encoding="utf-8") as f:
        user, nice, system, _, _, _, _, steal = (int(x) for x in f.readline().split()[1:9])
    return f"{steal}/{user + nice + system}"


class Probe:
    def __init__(self, files):
        self.files = files
        self.x = torch.zeros(8, 64, device=DEVICE, dtype=TYPE)
        self.w = torch.ones(64, device=DEVICE, dtype=TYPE, requires_grad=True)
        self.form = Form(dict(kind="gpt", V=2048, d=192, L=6, heads=3, kv=3, hd=64, ff=768, batch=1, seq=16), "eager")
        self.call = self.form.call("train small")
        for _ in range(3):
            timed(self.call, True, 1)

    def operator_us(self):
        with torch.no_grad():
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(500):
                self.x.add_(1)
            us = (time.perf_counter() - began) / 500 * 1e6
            torch.cuda.synchronize()
        return us

    def backward_us(self):
        us = []
        for _ in range(40):
            loss = (self.x * self.w).sum()
            began = time.perf_counter()
            loss.backward()
            us.append((time.perf_counter() - began) * 1e6)
            self.w.grad = None
        torch.cuda.synchronize()
        return statistics.median(us)

    def first_us(self):
        """From an idle device to the result of one operator."""
        us = []
        with torch.no_grad():
            for _ in range(60):
                torch.cuda.synchronize()
                began = time.perf_counter()
                self.x.add_(1)
                torch.cuda.synchronize()
                us.append((time.perf_counter() - began) * 1e6)
        return statistics.median(us)

    def row(self, when):
        steps = [timed(self.call, True, 5) for _ in range(3)]
        passes = [timed(lambda taken: self.form.model(self.form.few[:, :-1]), False, 10) for _ in range(3)]
        self.files.probes.row(HOST, when, round(time.perf_counter() - BEGAN, 1), *(round(x, 3) for x in (
            statistics.median(loop_us() for _ in range(50)), self.operator_us(), self.backward_us(), self.first_us(),
            statistics.median(s[0] for s in steps), statistics.median(s[4] for s in steps), statistics.median(s[0] for s in passes))), stolen())


def part_operators(files):
    """Chains of 40 calls on tiny tensors: microseconds a call without gradients, with them, and backward."""
    x = torch.randn(2, 128, 256, device=DEVICE, dtype=TYPE, requires_grad=True)
    w = (torch.randn(256, 256, device=DEVICE) * 0.06).to(TYPE).requires_grad_()
    b = torch.randn(256, device=DEVICE, dtype=TYPE, requires_grad=True)
    q = torch.randn(2, 128, 4, 64, device=DEVICE, dtype=TYPE).transpose(1, 2).requires_grad_()
    table = torch.randn(64, 256, device=DEVICE, dtype=TYPE, requires_grad=True)
    tokens, places = torch.randint(0, 64, (2, 128), device=DEVICE), torch.randint(0, 256, (256,), device=DEVICE)
    linear = nn.Linear(256, 256, device=DEVICE, dtype=TYPE)
    layer_norm, rms_norm = nn.LayerNorm(256, device=DEVICE, dtype=TYPE), nn.RMSNorm(256, device=DEVICE, dtype=TYPE)
    cache, new = torch.zeros(2, 4, 256, 64, device=DEVICE, dtype=TYPE), torch.zeros(2, 4, 1, 64, device=DEVICE, dtype=TYPE)
    cos = torch.randn(128, 64, device=DEVICE, dtype=TYPE)

    def rope(t):
        return t * cos + torch.cat((-t[..., 32:], t[..., :32]), -1) * cos

    def keep(t):
        cache[:, :, 200:201] = new
        return t

    def gated(t):
        a, g = torch.cat((t, t), -1).split(256, -1)
        return F.silu(a) * g

    chains = {"linear": (x, lambda t: F.linear(t, w)), "linear bias": (x, lambda t: F.linear(t, w, b)), "linear module": (x, linear),
              "layer norm module": (x, layer_norm), "rms norm module": (x, rms_norm), "gelu": (x, F.gelu), "silu": (x, F.silu),
              "cat, split, silu, mul": (x, gated), "add": (x, lambda t: t + x), "mul": (x, lambda t: t * x), "neg": (x, lambda t: -t),
              "cat": (x, lambda t: torch.cat((t[..., 128:], t[..., :128]), -1)), "view, transpose": (x, lambda t: t.view(2, 128, 4, 64).transpose(1, 2).transpose(1, 2).view(2, 128, 256)),
              "transpose, reshape": (q, lambda t: t.transpose(1, 2).reshape(2, 128, 256).view(2, 128, 4, 64).transpose(1, 2)),
              "rope": (q, rope), "sdpa": (q, lambda t: F.scaled_dot_product_attention(t, q, q, is_causal=True)),
              "embedding": (x, lambda t: F.embedding(tokens, table)), "softmax": (x, lambda t: torch.softmax(t, -1)),
              "index_select": (x, lambda t: t.view(256, 256).index_select(0, places).view(2, 128, 256)), "cache": (x, keep)}
    for name, (start, call) in chains.items():
        times, backs = {False: [], True: []}, []
        try:
            for i in range(14):
                grads = bool(i & 1)
                torch.cuda.synchronize()
                with torch.set_grad_enabled(grads):
                    began, t = time.perf_counter(), start
                    for _ in range(40):
                        t = call(t)
                    times[grads].append((time.perf_counter() - began) / 40 * 1e6)
                    torch.cuda.synchronize()
                    if grads and name not in ("cache", "embedding"):
                        loss = t.sum()
                        began = time.perf_counter()
                        loss.backward()
                        backs.append((time.perf_counter() - began) / 40 * 1e6)
                        for p in (x, w, b, q, table, *linear.parameters(), *layer_norm.parameters(), *rms_norm.parameters()):
                            p.grad = None
            files.operators.row(HOST, name, round(statistics.median(times[False][1:]), 2), round(statistics.median(times[True][1:]), 2),
                                round(statistics.median(backs[1:]), 2) if backs else "")
        except Exception as e:
            print(name, "failed:", repr(e)[:200], flush=True)


def part_optimizers(files):
    for tensors in (12, 60, 150, 300):
        weights = [torch.zeros(256, device=DEVICE, dtype=TYPE, requires_grad=True) for _ in range(tensors)]
        for w in weights:
            w.grad = torch.zeros_like(w)
        kinds = {"adamw_fused": torch.optim.AdamW(weights, fused=True), "adamw_foreach": torch.optim.AdamW(weights, foreach=True),
                 "sgd_foreach": torch.optim.SGD(weights, lr=1e-3, momentum=0.9, foreach=True)}
        calls = {name: o.step for name, o in kinds.items()} | {"clip": lambda: torch.nn.utils.clip_grad_norm_(weights, 1.0)}
        for name, call in calls.items():
            us = []
            for i in range(12):
                torch.cuda.synchronize()
                began = time.perf_counter()
                call()
                us.append((time.perf_counter() - began) * 1e6)
            files.optimizers.row(HOST, name, tensors, round(statistics.median(us[2:]), 1))
        torch.cuda.synchronize()


class Files:
    def __init__(self, folder):
        columns = ["loop_us", "stream_ms", "host_ms", *(f"{p}_ms" for p in PARTS)]
        self.calls = Out(folder, "calls", ["host", "model", "what", "layers", "round", *columns])
        self.turns = Out(folder, "turns", ["host", "model", "what", "layers", "calls", *columns, *(f"low_{x}" for x in columns)])
        self.wrappers = Out(folder, "wrappers", ["host", "model", "what", "layers", "tensors", "function", *Wrappers.WHAT, "warm_s"])
        self.operators = Out(folder, "operators", ["host", "op", "alone_us", "forward_us", "backward_us"])
        self.optimizers = Out(folder, "optimizers", ["host", "optimizer", "tensors", "us"])
        self.probes = Out(folder, "probes", ["host", "when", "at_s", "loop_us", "operator_us", "backward_us", "first_us", "step_ms",
                                             "step_backward_ms", "pass_ms", "steal"])


def main():
    global LIMIT, HOST
    folder, words = sys.argv[1], sys.argv[2:]
    for option in ("--seconds", "--host"):
        if option in words:
            at = words.index(option)
            LIMIT, HOST = (float(words[at + 1]), HOST) if option == "--seconds" else (LIMIT, words[at + 1])
            del words[at:at + 2]
    words = words or ["operators", "optimizers", "models"]  # brief: no whole models
    files, wrappers = Files(folder), Wrappers()
    print(torch.__version__, torch.cuda.get_device_name(), flush=True)
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        print(next((line.strip() for line in f if line.startswith("model name")), ""), flush=True)
    probe = Probe(files)
    probe.row("start")
    for part in ("operators", "optimizers"):
        if part in words:
            try:
                globals()[f"part_{part}"](files)
            except Exception:
                traceback.print_exc()
    for name, c in MODELS.items() if "models" in words else ():
        if left() < 25:
            print("no time for", name, flush=True)
            break
        probe.row(name)
        try:
            measure_model(name, c, files, wrappers, "brief" not in words)
        except Exception:
            traceback.print_exc()
        print(name, "left", round(left()), "compiled functions", len(wrappers.found), flush=True)
    if "operators" in words and left() > 5:
        part_operators(files)
    probe.row("end")


if __name__ == "__main__":
    main()
