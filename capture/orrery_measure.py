#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""orrery_measure.py - times the kernels of training and serving on the GPU of this machine, in minutes.

    python3 orrery_measure.py [-o measured.csv] [--seconds 240]
    orrery calibrate kernels measured.csv --like h200 -o my-gpu.yml
    orrery run step.orr --hardware my-gpu.yml

Needs PyTorch with CUDA and nothing else.  A row is a kernel in the words of `orrery chip time`, microseconds of one call in
a replayed CUDA graph of 20 (caches warm, median of 5), and microseconds that the host needs to issue it.  What does not fit
into memory or is not supported is left out.  Shapes are drawn with a fixed seed, so that two runs measure the same."""

import argparse
import random
import sys
import time

import torch
import torch.nn.functional as F

COPIES, REPEATS = 20, 5


def device_us(call):
    """Of one call: a graph of copies, replayed."""
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
    """Until a call returns, when the device has nothing to do."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(COPIES):
        call()
    took = (time.perf_counter() - began) * 1e6 / COPIES
    torch.cuda.synchronize()
    return took


def tensor(*shape, dtype=torch.bfloat16):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", default="measured.csv")
    parser.add_argument("--seconds", type=float, default=240, help="stop after so long (240)")
    options = parser.parse_args()
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
