#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""held_products.py - matrix products in bf16 and fp8, after a rest and held for seconds: how far the power limit slows each type.

    python3 truth/measure/held_products.py OUT_FOLDER

Needs PyTorch with CUDA and nvidia-smi.  Writes held_products.csv.  Operands are normally distributed, as in training: what a
product draws depends on its data."""

import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from passes_h200 import Clock
from steps_h200 import Out

SHAPES = [(4096, 12288, 12288), (4096, 9216, 12288), (8192, 8192, 8192), (8192, 4096, 16384), (4096, 6656, 16384), (8192, 28672, 4096),
          (4096, 3072, 12288), (16384, 5120, 5120), (2048, 8192, 8192)]
HELD_S = 2.5


def product(kind, m, n, k):
    """A call without arguments: three sets of operands in turn, so that no cache holds them."""
    sets = []
    for _ in range(3):
        a, b = torch.randn(m, k, device="cuda", dtype=torch.bfloat16), torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        sets.append((a, b) if kind == "bf16" else (a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)))
    one = torch.ones((), device="cuda")
    state = [0]

    def call():
        a, b = sets[state[0] % 3]
        state[0] += 1
        if kind == "bf16":
            return a @ b.t()
        return torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=kind == "fp8")

    return call


def timed(call, times):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / times


def main():
    folder = Path(sys.argv[1])
    out = Out(folder, "held_products", ["type", "m", "n", "k", "rested_us", "held_us", "clock_mhz", "power_w", "celsius"])
    clock = Clock()
    for m, n, k in SHAPES:
        for kind in ("bf16", "fp8", "fp8_exact"):
            call = product(kind, m, n, k)
            timed(call, 3)
            rested = []
            for _ in range(5):
                time.sleep(0.3)
                rested.append(timed(call, 2))
            us = timed(call, 20)
            began = time.perf_counter()
            while time.perf_counter() - began < HELD_S - 1:
                us = timed(call, max(1, int(50e3 / us)))
            held, since = [], time.perf_counter()
            while time.perf_counter() - since < 1:
                held.append(timed(call, max(1, int(50e3 / us))))
            end = time.perf_counter()
            out.row(kind, m, n, k, round(sorted(rested)[2], 2), round(sum(held) / len(held), 2), *clock.between(end - 0.9, end))
    clock.child.terminate()


if __name__ == "__main__":
    main()
