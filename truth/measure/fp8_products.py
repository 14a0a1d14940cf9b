#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fp8_products.py - products in 8 bits of training steps: in a burst, and held for a second; beside passes over memory; FlashAttention 2.

    python3 fp8_products.py OUT_FOLDER [SECONDS]

Needs PyTorch with CUDA and nvidia-smi.  Operands are normally distributed.  burst: 20 copies in a CUDA graph after a rest, as h200_kernels has
them; held: the last 0.6 s of 1 s.  Writes fp8_products.csv, fp8_mixes.csv, flash2.csv; stops by itself after SECONDS (230)."""

import csv
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch

BEGAN = time.perf_counter()
MOST = float(sys.argv[2]) if len(sys.argv) > 2 else 230.0


def late(part=1.0):
    return time.perf_counter() - BEGAN > MOST * part


class Clock:
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


class Out:
    def __init__(self, folder, name, columns):
        self.file = open(Path(folder) / f"{name}.csv", "w", newline="", encoding="utf-8")
        self.writer = csv.writer(self.file)
        self.writer.writerow(columns)

    def row(self, *values):
        self.writer.writerow(values)
        self.file.flush()


def events(call, times):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / times


def graph_of(call, times):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call()
        call()
    torch.cuda.current_stream().wait_stream(side)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for _ in range(times):
            call()
    return g


def product(kind, m, n, k):
    sets = []
    for _ in range(3):
        a, b = torch.randn(m, k, device="cuda", dtype=torch.bfloat16), torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        sets.append((a, b) if kind == "bf16" else (a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)))
    one = torch.ones((), device="cuda")
    rows, columns = torch.ones(m, 1, device="cuda"), torch.ones(1, n, device="cuda")
    state = [0]

    def call():
        a, b = sets[state[0] % 3]
        state[0] += 1
        if kind == "bf16":
            return a @ b.t()
        if kind == "fp8_row":
            return torch._scaled_mm(a, b.t(), scale_a=rows, scale_b=columns, out_dtype=torch.bfloat16, use_fast_accum=True)
        return torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=kind == "fp8")

    return call


def held(clock, replay, us, seconds=1.0, last=0.6):
    """us of one replay, and the clock"""
    began = time.perf_counter()
    n = max(1, int(40e3 / us))
    while time.perf_counter() - began < seconds - last:
        us = events(replay, n)
    got, since = [], time.perf_counter()
    while time.perf_counter() - since < last:
        got.append(events(replay, n))
    end = time.perf_counter()
    return statistics.mean(got), clock.between(end - last + 0.1, end)


# m, n, k: forward, data and weight gradients of GPT-3 175B (tp 4, 8), Llama 8B, 70B, 405B (tp 1, 2, 4, 8), and small ones
SHAPES = [(2048, 4608, 12288), (4096, 4608, 12288), (2048, 12288, 1536), (4096, 12288, 3072), (4096, 12288, 6144), (4096, 12288, 12288),
          (2048, 9216, 12288), (4096, 3072, 12288), (12288, 4608, 4096), (12288, 12288, 4096), (12288, 3072, 2048),
          (16384, 6144, 4096), (16384, 4096, 4096), (16384, 28672, 4096), (16384, 4096, 14336), (6144, 4096, 16384), (4096, 4096, 16384),
          (28672, 4096, 16384), (4096, 14336, 16384), (8192, 10240, 8192), (8192, 8192, 8192), (8192, 57344, 8192), (8192, 8192, 28672),
          (8192, 7168, 8192), (8192, 1280, 8192), (8192, 8192, 3584), (8192, 8192, 1024), (8192, 2304, 16384), (8192, 16384, 2048),
          (8192, 13312, 16384), (8192, 16384, 6656), (4096, 4608, 16384), (4096, 26624, 16384), (16384, 13312, 8192), (2304, 16384, 8192),
          (2048, 2048, 2048), (4096, 4096, 4096), (1024, 8192, 8192), (2048, 8192, 8192), (1024, 4096, 4096), (512, 4096, 4096),
          (2048, 6144, 2048), (4096, 1024, 4096), (16384, 5120, 5120), (65536, 4096, 4096), (32768, 2048, 2048)]


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    clock = Clock()
    out = Out(folder, "fp8_products", ["type", "m", "n", "k", "burst_us", "held_us", "clock_mhz", "power_w", "celsius"])

    def one(kind, m, n, k):
        call = product(kind, m, n, k)
        g = graph_of(call, 20)
        g.replay()
        torch.cuda.synchronize()
        bursts = []
        for _ in range(3):
            time.sleep(0.1)
            g.replay()  # the clock leaves its idle state
            bursts.append(events(g.replay, 1) / 20)
        us, state = held(clock, g.replay, bursts[0] * 20)
        out.row(kind, m, n, k, round(statistics.median(bursts), 3), round(us / 20, 3), *state)
        del g
        torch.cuda.empty_cache()

    for m, n, k in SHAPES:
        if not late(0.5):
            one("fp8", m, n, k)
    for m, n, k in SHAPES[::6]:
        if not late(0.6):
            one("bf16", m, n, k)
    for m, n, k in SHAPES[1::8]:
        if not late(0.66):
            try:
                one("fp8_row", m, n, k)
            except RuntimeError:
                pass
    # products beside passes over memory in one graph
    out = Out(folder, "fp8_mixes", ["type", "products", "passes", "tflops", "gbytes_s", "held_us", "clock_mhz", "power_w", "celsius"])
    x, y = (torch.randn(1 << 28, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    for kind, mixes in (("fp8", [(16, 0), (16, 1), (12, 1), (8, 1), (8, 2), (8, 4), (4, 4), (4, 8), (2, 8)]), ("bf16", [(16, 0), (8, 2), (4, 4)])):
        call = product(kind, 8192, 8192, 8192)
        for products, passes in mixes:
            if late(0.86):
                break

            def both():
                for i in range(max(products, passes)):
                    if i < products:
                        call()
                    if i < passes:
                        torch.add(x, 1, out=y)

            g = graph_of(both, 1)
            g.replay()
            torch.cuda.synchronize()
            us, state = held(clock, g.replay, events(g.replay, 1), 1.6, 0.9)
            out.row(kind, products, passes, round(products * 2 * 8192**3 / us * 1e-6, 1), round(passes * 4 * x.numel() / us * 1e-3, 1), round(us, 2), *state)
            del g
    del x, y
    torch.cuda.empty_cache()
    # attention: FlashAttention 2 as PyTorch has it, and cuDNN's
    out = Out(folder, "flash2", ["which", "batch", "heads", "head", "q", "kv", "causal", "backward", "held_us", "clock_mhz", "power_w", "celsius"])
    for b, h, d, q, kv, causal in ((2, 32, 128, 8192, 8192, 1), (1, 32, 128, 32768, 32768, 1), (1, 32, 128, 16384, 32768, 0), (1, 32, 128, 32768, 16384, 0),
                                   (1, 16, 128, 8192, 8192, 1), (2, 32, 128, 4096, 4096, 1), (4, 16, 128, 2048, 2048, 1), (8, 16, 64, 2048, 2048, 1)):
        for which in ("flash", "cudnn"):
            if late(0.98):
                break
            t = [torch.randn(b, h, n, d, device="cuda", dtype=torch.bfloat16) for n in (q, kv, kv)]
            grad = torch.randn(b, h, q, d, device="cuda", dtype=torch.bfloat16)
            try:
                if which == "flash":
                    def forward():
                        return torch.ops.aten._scaled_dot_product_flash_attention(*t, 0.0, bool(causal))
                    r = forward()
                    def backward():
                        return torch.ops.aten._scaled_dot_product_flash_attention_backward(grad, *t, r[0], r[1], r[2], r[3], r[4], r[5], 0.0, bool(causal), r[6], r[7])
                else:
                    def forward():
                        return torch.ops.aten._scaled_dot_product_cudnn_attention(*t, None, True, 0.0, bool(causal))
                    r = forward()
                    def backward():
                        return torch.ops.aten._scaled_dot_product_cudnn_attention_backward(grad, *t, r[0], r[1], r[6], r[7], None, r[2], r[3], r[4], r[5], 0.0, bool(causal))
                for back, call in ((0, forward), (1, backward)):
                    call()
                    us, state = held(clock, call, max(20.0, events(call, 2)), 0.8, 0.5)
                    out.row(which, b, h, d, q, kv, causal, back, round(us, 2), *state)
            except (RuntimeError, TypeError) as e:
                print(which, b, h, d, q, kv, causal, str(e).split("\n")[0], flush=True)
            del t, grad
    clock.child.terminate()
    print("done after %.0f s" % (time.perf_counter() - BEGAN))


if __name__ == "__main__":
    main()
