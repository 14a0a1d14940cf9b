#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""orrery_measure.py - kernel times for `orrery calibrate kernels`: measured on the GPU of this machine in minutes, or
read from traces of PyTorch's profiler.

    python3 orrery_measure.py [-o measured.csv] [--seconds 240]
    python3 orrery_measure.py --kineto trace.json.gz [MORE...] [-o measured.csv]
    orrery calibrate kernels measured.csv --like h200 -o my-gpu.yml
    orrery run step.orr --hardware my-gpu.yml

Needs PyTorch with CUDA and nothing else; --kineto needs only Python, and traces recorded with record_shapes=True.  A
row has a kernel in the syntax of `orrery chip time`, the microseconds of one call in a replayed CUDA graph of 20
(caches warm, median of 5), and the microseconds the host takes to issue it.  Kernels that do not fit into memory or are
not supported are left out.  Shapes are drawn with a fixed seed, so that all runs measure the same kernels."""

import argparse
import gzip
import json
import random
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ModuleNotFoundError:  # not needed for --kineto
    torch = None

COPIES, REPEATS = 20, 5


def device_us(call):
    """Device time of one call: a graph of copies, replayed."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(COPIES):
            call()
    times = []
    graph.replay()
    torch.cuda.synchronize()
    for _ in range(REPEATS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / COPIES)
    return sorted(times)[REPEATS // 2]


def host_us(call):
    """Host time until a call returns while the device is idle."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(COPIES):
        call()
    took = (time.perf_counter() - began) * 1e6 / COPIES
    torch.cuda.synchronize()
    return took


def tensor(*shape, dtype=torch and torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=torch.float32).mul_(0.5).to(dtype)


# ---- kernels: (text, call) ----


def products(rng):
    widths = [768, 1024, 1536, 2048, 3072, 4096, 5120, 8192, 11008, 14336, 28672]
    for _ in range(60):
        m, n, k = rng.choice([1, 8, 64, 256, 1024, 2048, 4096, 8192, 16384]), rng.choice(widths), rng.choice(widths)
        layout = rng.choice(["", " nn", " tn"])
        if layout == " tn":
            a, b = tensor(k, m).t(), tensor(k, n)
        else:
            a, b = tensor(m, k), tensor(n, k).t() if layout == "" else tensor(k, n)
        yield f"gemm bf16 m={m} n={n} k={k}{layout}", lambda a=a, b=b: a @ b


def attentions(rng):
    for _ in range(16):
        batch, heads, head = rng.choice([1, 2, 4, 8]), rng.choice([12, 16, 32]), rng.choice([64, 128])
        kv_heads, length = rng.choice([heads, heads // 4]), rng.choice([512, 1024, 2048, 4096, 8192])
        q, k, v = tensor(batch, length, heads, head), tensor(batch, length, kv_heads, head), tensor(batch, length, kv_heads, head)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        yield (f"attention bf16 batch={batch} heads={heads} kv_heads={kv_heads} head={head} q={length} kv={length} causal",
               lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))


def rows(rng):
    for _ in range(14):
        m, n = rng.choice([256, 1024, 4096, 8192, 16384]), rng.choice([768, 1024, 2048, 4096, 8192])
        x, w = tensor(m, n), tensor(n)
        yield f"norm bf16 m={m} n={n} rms", lambda x=x, w=w, n=n: F.rms_norm(x, (n,), w)
        yield f"norm bf16 m={m} n={n} layer", lambda x=x, w=w, n=n: F.layer_norm(x, (n,), w, w)
        yield f"softmax bf16 m={m} n={n}", lambda x=x: torch.softmax(x, -1)
        yield f"reduce bf16 m={m} n={n} rows", lambda x=x: x.sum(0)


def passes(rng):
    for power in range(14, 29, 2):
        n = 1 << power
        x, y = tensor(n), tensor(n)
        yield f"elementwise bf16 read={4 * n} write={2 * n}", lambda x=x, y=y: x + y
        yield f"activation bf16 m={n} gelu", lambda x=x: F.gelu(x)
        yield f"activation bf16 m={n} silu", lambda x=x: F.silu(x)
        yield f"copy bf16 write={2 * n}", lambda x=x: x.clone()
        yield f"fill bf16 write={2 * n}", lambda x=x: x.zero_()
        side = 1 << power // 2
        t = x[:side * side].view(side, side)
        yield f"copy bf16 write={2 * side * side} strided", lambda t=t: t.t().contiguous()


def optimizers():
    for count in (1 << 20, 1 << 24, 1 << 27):
        parts = [torch.nn.Parameter(tensor(count // 16)) for _ in range(16)]
        for p in parts:
            p.grad = tensor(count // 16)
        optimizer = torch.optim.AdamW(parts, fused=True, capturable=True)
        yield f"optimizer bf16 m={count} k=16 fused", optimizer.step


def everything(rng):
    yield "launch bf16", lambda one=torch.zeros(1, device="cuda"): one.add_(1)
    for kind in (products(rng), attentions(rng), rows(rng), passes(rng)):
        yield from kind
    yield from optimizers()


# ---- from traces of the profiler ----

TYPES = {"c10::BFloat16": "bf16", "c10::Half": "fp16", "float": "fp32"}


def elements(dims):
    count = 1
    for n in dims:
        count *= n
    return count


def is_whole(dims, strides):
    """Is the tensor contiguous in memory?"""
    after = 1
    for n, stride in zip(reversed(dims), reversed(strides)):
        if n > 1 and stride != after:
            return False
        after *= n
    return True


def product_text(name, dims, strides, types):
    """mm, addmm and bmm; strides show which operand is transposed."""
    first = 1 if name == "aten::addmm" else 0
    a, b, across, down = dims[first], dims[first + 1], strides[first], strides[first + 1]
    batch = f"batch={a[0]} " if name == "aten::bmm" else ""
    m, k, n = a[-2], a[-1], b[-1]
    layout = " tn" if across[-1] != 1 and m > 1 else "" if down[-1] != 1 else " nn"
    bias = " bias" if first and dims[0] == [n] else ""
    return f"gemm {types[first]} {batch}m={m} n={n} k={k}{bias}{layout}"


def attention_text(name, dims, strides, types, concrete):
    backward = name.endswith("backward")
    q, k = dims[int(backward)], dims[int(backward) + 1]
    causal = concrete[(14 if backward else 10) if "cudnn" in name else (11 if backward else 8)] == "True"
    if "flash" in name:  # batch, sequence, heads
        q, k = [[x[0], x[2], x[1], x[3]] for x in (q, k)]
    kv_heads = f" kv_heads={k[1]}" if k[1] != q[1] else ""
    kv = f" kv={k[2]}" if k[2] != q[2] else ""
    return (f"attention {types[int(backward)]} batch={q[0]} heads={q[1]}{kv_heads} head={q[3]} q={q[2]}{kv}"
            + (" backward" if backward else "") + (" causal" if causal else ""))


NORMS = {"aten::native_layer_norm": ("layer", 0, ""), "aten::native_layer_norm_backward": ("layer", 1, " backward"),
         "aten::_fused_rms_norm": ("rms", 0, ""), "aten::_fused_rms_norm_backward": ("rms", 1, " backward")}
ACTIVATIONS = {"aten::gelu": "gelu", "aten::silu": "silu", "aten::gelu_backward": "gelu backward",
               "aten::silu_backward": "silu backward"}
ATTENTIONS = ("aten::_cudnn_attention_forward", "aten::_cudnn_attention_backward", "aten::_flash_attention_forward",
              "aten::_flash_attention_backward")


def text_of(event):
    """The kernel of an operator, in the syntax of `orrery chip time`; None: not supported here."""
    name, a = event["name"], event["args"]
    dims, strides = a.get("Input Dims"), a.get("Input Strides")
    types = [TYPES.get(t) for t in a.get("Input type", [])]
    if not dims or not strides or not types or not types[0]:
        return None
    if name in ("aten::mm", "aten::addmm", "aten::bmm"):
        return product_text(name, dims, strides, types)
    if name in ATTENTIONS:
        return attention_text(name, dims, strides, types, a["Concrete Inputs"])
    if name in NORMS:
        form, at, back = NORMS[name]
        width = dims[at][-1]
        return f"norm {types[at]} m={elements(dims[at]) // width} n={width} {form}{back}"
    if name in ACTIVATIONS:
        strided = "" if is_whole(dims[0], strides[0]) else " strided"
        form, _, back = ACTIVATIONS[name].partition(" ")
        return f"activation {types[0]} m={elements(dims[0])} {form}{back and ' ' + back}{strided}"
    return None


def rows_of_trace(path, found):
    """Adds to found: text -> microseconds of each call."""
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
            events = json.load(f)["traceEvents"]
    except (OSError, ValueError, KeyError, TypeError) as why:
        sys.exit(f"{path}: no trace of PyTorch's profiler: {why}")
    spent = {}
    for e in events:
        if e.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy") and "External id" in e.get("args", {}):
            spent[e["args"]["External id"]] = spent.get(e["args"]["External id"], 0) + e["dur"]
    for e in events:
        us = spent.get(e.get("args", {}).get("External id")) if e.get("cat") == "cpu_op" else None
        try:
            text = text_of(e) if us else None
        except (KeyError, IndexError, TypeError) as why:
            sys.exit(f"{path}: {e['name']} at {e.get('ts')}: its arguments are not those of PyTorch 2: {why!r}")
        if text:
            found.setdefault(text, []).append(us)


def write_traces(paths, output):
    found = {}
    for path in paths:
        rows_of_trace(path, found)
    if not found:
        sys.exit(f"{paths[0]}: no operators with shapes that launched kernels; record with record_shapes=True")
    with open(output, "w", encoding="utf-8") as out:
        out.write("# orrery-measured 1: from traces of PyTorch's profiler, medians of equal calls\nkernel,us,calls\n")
        for text, us in sorted(found.items()):
            out.write(f"{text},{sorted(us)[len(us) // 2]:.3f},{len(us)}\n")
    print(f"{output}: {len(found)} kernels of {sum(len(us) for us in found.values())} calls")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", default="measured.csv")
    parser.add_argument("--seconds", type=float, default=240, help="stop after so long (240)")
    parser.add_argument("--kineto", nargs="+", metavar="TRACE", help="read traces of the profiler instead")
    options = parser.parse_args()
    if options.kineto:
        write_traces(options.kineto, options.output)
        return
    if not torch:
        sys.exit("orrery_measure.py: there is no PyTorch here; --kineto reads traces without it")
    if not torch.cuda.is_available():
        sys.exit("orrery_measure.py: PyTorch finds no GPU here")
    torch.manual_seed(1)
    began, count = time.time(), 0
    with open(options.output, "w", encoding="utf-8") as out:
        out.write(f"# orrery-measured 1: {torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
        out.write("kernel,us,host_us\n")
        with torch.no_grad():
            for text, call in everything(random.Random(7)):
                if time.time() - began > options.seconds:
                    break
                try:
                    host, device = host_us(call), device_us(call)
                except (RuntimeError, TypeError) as why:
                    print(f"left out: {text}: {str(why).splitlines()[0]}", file=sys.stderr)
                    continue
                out.write(f"{text},{device:.3f},{host:.2f}\n")
                count += 1
    print(f"{options.output}: {count} kernels in {time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
