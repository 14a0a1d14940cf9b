#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""context_parallel.py - what one rank's device does in PyTorch's ring attention (torch.distributed.tensor.experimental, context_parallel),
on one GPU without a network: the chunks of the other ranks are local copies.

    python3 truth/measure/context_parallel.py OUT_FOLDER [--seconds 120]

Writes context_parallel.csv (forward and backward of one layer's attention: rested and held) and context_kernels.csv (who launched which
kernels in them).  `ring`: the steps written out here; `torch`: PyTorch's own code on a process group that sends nothing (`fake`);
`whole`: one call of FlashAttention 2 with as many operations; `cudnn`: the same with cuDNN."""

import csv
import json
import statistics
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import torch
import torch.nn.functional as F

from steps_h200 import profiled

BEGAN, LIMIT = time.perf_counter(), 120.0
DEVICE, TYPE = "cuda", torch.bfloat16
aten = torch.ops.aten


def left():
    return LIMIT - (time.perf_counter() - BEGAN)


class Out:
    def __init__(self, folder, name, columns):
        self.file = open(Path(folder) / f"{name}.csv", "w", newline="", encoding="utf-8")
        self.writer = csv.writer(self.file)
        self.writer.writerow(columns)

    def row(self, *values):
        self.writer.writerow(values)
        self.file.flush()


class Clock:
    """Clock and power every 50 ms, from nvidia-smi."""

    def __init__(self):
        self.rows, self.child = [], None
        try:
            self.start()
        except OSError as e:
            print("no nvidia-smi", e, flush=True)

    def start(self):
        self.child = subprocess.Popen(["nvidia-smi", "--query-gpu=clocks.sm,power.draw,temperature.gpu", "--format=csv,noheader,nounits", "-lms", "50"],
                                      stdout=subprocess.PIPE, text=True)
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


def flash(q, k, v, causal):
    out = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False, scale=None)
    return out[0], out[1], out


def flash_back(dout, q, k, v, out, lse, kept, causal):
    return aten._scaled_dot_product_flash_attention_backward(dout, q, k, v, out, lse, kept[2], kept[3], kept[4], kept[5], 0.0, causal, kept[6], kept[7],
                                                             scale=None)


def update(whole, part, at, add):
    """The half `at` of a sequence becomes `part`, or grows by it; all is copied."""
    halves = list(whole.chunk(2, dim=2))
    if add:
        halves[at] += part
    else:
        halves[at] = part
    return torch.cat(halves, dim=2)


class Ring:
    """The steps of one rank, balanced by halves."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def forward(self, q, k, v):
        k, v = k.contiguous(), v.contiguous()
        gathered = torch.cat([torch.cat([k.flatten(), v.flatten()])] * self.size)  # stands for the gather
        out = lse = None
        for i in range(self.size):
            if i:
                chunk = gathered.chunk(self.size)[(self.rank - i) % self.size]
                k, v = chunk[:k.numel()].reshape(k.shape), chunk[k.numel():].reshape(v.shape)
            partial = False
            if i == 0:
                block = flash(q, k, v, True)
            elif i <= self.rank:
                block = flash(q, k.chunk(2, 2)[0], v.chunk(2, 2)[0], False)
            else:
                block, partial = flash(q.chunk(2, 2)[1], k, v, False), True
            block_out, block_lse = block[0].float(), block[1].float().unsqueeze(-1)
            if out is None:
                out, lse = block_out, block_lse
                self.kept = block[2]
                continue
            o, s = (out.chunk(2, 2)[1], lse.chunk(2, 2)[1]) if partial else (out, lse)
            o = o - torch.sigmoid(block_lse - s) * (o - block_out)
            s = s - F.logsigmoid(s - block_lse)
            out, lse = (update(out, o, 1, False), update(lse, s, 1, False)) if partial else (o, s)
        return out.to(q.dtype), lse.squeeze(-1)

    def backward(self, dout, q, k, v, out, lse):
        dq, dk, dv = (torch.zeros_like(t, dtype=torch.float32) for t in (q, k, v))
        k, v = k.contiguous(), v.contiguous()
        gathered = torch.cat([torch.cat([k.flatten(), v.flatten()])] * self.size)
        for i in range(self.size):
            if i:
                chunk = gathered.chunk(self.size)[(self.rank - i) % self.size]
                k, v = chunk[:k.numel()].reshape(k.shape), chunk[k.numel():].reshape(v.shape)
            if i == 0:
                found = flash_back(dout, q, k, v, out, lse, self.kept, True)
            elif i <= self.rank:
                found = flash_back(dout, q, k.chunk(2, 2)[0], v.chunk(2, 2)[0], out, lse, self.kept, False)
            else:
                found = flash_back(dout.chunk(2, 2)[1], q.chunk(2, 2)[1], k, v, out.chunk(2, 2)[1], lse.chunk(2, 2)[1].contiguous(), self.kept, False)
            if i == 0:
                dk += found[1]
                dv += found[2]
            else:
                arrived = self.sent.clone()  # what the neighbour sends
                dk, dv = arrived[:dk.numel()].reshape(dk.shape), arrived[dk.numel():].reshape(dv.shape)
                if i <= self.rank:
                    dk, dv = update(dk, found[1], 0, True), update(dv, found[2], 0, True)
                else:
                    dk += found[1]
                    dv += found[2]
            self.sent = torch.cat([dk.flatten(), dv.flatten()])
            if i <= self.rank:
                dq += found[0]
            else:
                dq = update(dq, found[0], 1, True)
        arrived = self.sent.clone()
        dk, dv = arrived[:dk.numel()].reshape(dk.shape), arrived[dk.numel():].reshape(dv.shape)
        return dq.to(q.dtype), dk.to(q.dtype), dv.to(q.dtype)


class Torch:
    """PyTorch's own code."""

    def __init__(self, rank, size):
        import torch.distributed as dist
        from torch.testing._internal.distributed.fake_pg import FakeStore
        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=size)
        self.group = dist.group.WORLD
        try:
            from torch.distributed.tensor.experimental._context_parallel import _attention as code
        except ImportError:
            from torch.distributed.tensor.experimental import _attention as code
        self.code = code
        try:
            code._cp_options.enable_load_balance = True
        except Exception:
            print("no options", flush=True)

    def forward(self, q, k, v):
        out, lse, *rest = self.code._templated_ring_attention(self.group, 2, aten._scaled_dot_product_flash_attention, query=q, key=k, value=v, is_causal=True)
        self.kept = (out, lse, *rest)
        return out, lse

    def backward(self, dout, q, k, v, out, lse):
        kept = self.kept
        names = ("cum_seq_q", "cum_seq_k", "max_q", "max_k")
        more = dict(zip(names, kept[2:6])) | dict(dropout_p=0.0, philox_seed=kept[6], philox_offset=kept[7])
        return self.code._templated_ring_attention_backward(self.group, 2, aten._scaled_dot_product_flash_attention_backward.default, grad_out=dout,
                                                            grad_out_name="grad_out", query=q, key=k, value=v, out=out, logsumexp=lse, is_causal=True, **more)


class Whole:
    def __init__(self, causal):
        self.causal = causal

    def forward(self, q, k, v):
        self.kept = flash(q, k, v, self.causal)
        return self.kept[:2]

    def backward(self, dout, q, k, v, out, lse):
        return flash_back(dout, q, k, v, out, lse, self.kept[2], self.causal)


class Cudnn:
    def __init__(self, causal):
        self.causal = causal

    def forward(self, q, k, v):
        self.kept = aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, self.causal, False, scale=None)
        return self.kept[:2]

    def backward(self, dout, q, k, v, out, lse):
        x = self.kept
        return aten._scaled_dot_product_cudnn_attention_backward(dout, q, k, v, out, lse, x[6], x[7], None, x[2], x[3], x[4], x[5], 0.0, self.causal, scale=None)


def kernels_of(call):
    """(who launched it, its shapes, kernel) -> calls, us"""
    events = profiled(call)
    owners, found = {}, {}
    for e in events:
        if e.get("cat") in ("cpu_op", "user_annotation") and "External id" in e.get("args", {}):
            a = e["args"]
            owners[a["External id"]] = (e["name"], *(json.dumps(a.get(x, []), separators=(",", ":")) for x in ("Input Dims", "Input type", "Input Strides")))
    for e in events:
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            key = (*owners.get(e["args"].get("External id"), ("", "", "", "")), e["name"][:90])
            n, us = found.get(key, (0, 0.0))
            found[key] = (n + 1, us + e["dur"])
    return found


def measure(files, clock, what, cp, rank, heads, length, make, keys=None):
    torch.manual_seed(0)
    # a view of batch, sequence, heads, as projections leave it
    q = torch.randn(1, length, heads, 128, device=DEVICE, dtype=TYPE).transpose(1, 2)
    k, v = (torch.randn(1, keys or length, heads, 128, device=DEVICE, dtype=TYPE).transpose(1, 2) for _ in range(2))
    dout = torch.randn(1, length, heads, 128, device=DEVICE, dtype=TYPE).transpose(1, 2)
    try:
        it = make()
        out, lse = it.forward(q, k, v)
        for which, call in (("forward", lambda: it.forward(q, k, v)), ("backward", lambda: it.backward(dout, q, k, v, out, lse))):
            call()
            torch.cuda.synchronize()
            found = kernels_of(call)
            time.sleep(0.3)
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            call()
            b.record()
            torch.cuda.synchronize()
            rested = a.elapsed_time(b)
            began, times = time.perf_counter(), []
            while time.perf_counter() - began < 0.8 or len(times) < 2:
                t0 = time.perf_counter()
                call()
                torch.cuda.synchronize()
                times.append((time.perf_counter() - t0) * 1e3)
            end = time.perf_counter()
            files[0].row(what, cp, rank, heads, length, keys or length, which, round(rested, 3), round(statistics.mean(times[len(times) // 2:]), 3),
                         round(sum(us for _, us in found.values()) / 1e3, 3), sum(n for n, _ in found.values()), *clock.between(end - 0.4, end))
            for key, (n, us) in sorted(found.items(), key=lambda item: -item[1][1]):
                files[1].row(what, cp, rank, heads, length, which, *key, n, round(us, 2))
    except Exception:
        print(what, cp, rank, heads, length, traceback.format_exc()[-1500:], flush=True)
    print(what, cp, rank, heads, length, "left", round(left()), flush=True)
    torch.cuda.empty_cache()


def compiled(files, clock, cp, rank, heads, length):
    """Through context_parallel and scaled_dot_product_attention, eager and compiled, as a trainer calls it."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn.attention import SDPBackend, sdpa_kernel
    Torch(rank, cp)
    mesh = init_device_mesh("cuda", (cp,))
    w = torch.randn(heads * 128, heads * 128, device=DEVICE, dtype=TYPE) * 0.01
    for mode in ("eager", "compile"):
        try:
            x = torch.randn(1, length * cp, heads * 128, device=DEVICE, dtype=TYPE)

            def layer(x):
                q, k, v = (t.view(1, x.shape[1], heads, 128).transpose(1, 2) for t in (F.linear(x, w), F.linear(x, w), F.linear(x, w)))
                return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(1, x.shape[1], -1)

            call = torch.compile(layer) if mode == "compile" else layer
            with sdpa_kernel([SDPBackend.FLASH_ATTENTION]), context_parallel(mesh, buffers=[x], buffer_seq_dims=[1]):
                y = x.detach().clone().requires_grad_()

                def both():
                    call(y).sum().backward()

                both()
                both()
                torch.cuda.synchronize()
                found = kernels_of(both)
                t0 = time.perf_counter()
                for _ in range(2):
                    both()
                torch.cuda.synchronize()
                files[0].row("sdpa " + mode, cp, rank, heads, y.shape[1], y.shape[1], "both", "", round((time.perf_counter() - t0) * 500, 3),
                             round(sum(us for _, us in found.values()) / 1e3, 3), sum(n for n, _ in found.values()), "", "", "")
                for key, (n, us) in sorted(found.items(), key=lambda item: -item[1][1]):
                    files[1].row("sdpa " + mode, cp, rank, heads, y.shape[1], "both", *key, n, round(us, 2))
        except Exception:
            print("sdpa", mode, cp, rank, traceback.format_exc()[-2500:], flush=True)
        torch.cuda.empty_cache()
        print("sdpa", mode, cp, rank, "left", round(left()), flush=True)


def main():
    global LIMIT
    if "--seconds" in sys.argv:
        LIMIT = float(sys.argv[sys.argv.index("--seconds") + 1])
    files = (Out(sys.argv[1], "context_parallel", ["what", "cp", "rank", "heads", "q", "kv", "pass", "rested_ms", "held_ms", "kernels_ms", "kernels",
                                                   "clock_mhz", "power_w", "celsius"]),
             Out(sys.argv[1], "context_kernels", ["what", "cp", "rank", "heads", "q", "pass", "op", "shapes", "types", "strides", "kernel", "calls", "us"]))
    clock = Clock()
    n = 32768
    cases = [("torch", 4, 0, 32), ("torch", 4, 3, 32), ("ring", 4, 0, 32), ("torch", 8, 0, 32), ("torch", 8, 7, 32), ("torch", 2, 0, 32), ("torch", 2, 1, 32),
             ("ring", 4, 3, 32), ("ring", 2, 0, 32), ("ring", 8, 7, 32), ("torch", 4, 1, 16), ("torch", 8, 3, 16), ("torch", 2, 0, 16)]
    measure(files, clock, "whole causal", 1, 0, 32, n, lambda: Whole(True))
    measure(files, clock, "whole", 4, 0, 32, n, lambda: Whole(False), n * 2)
    for what, cp, rank, heads in cases[:3]:
        measure(files, clock, what, cp, rank, heads, n, lambda: {"ring": Ring, "torch": Torch}[what](rank, cp))
    try:
        if left() > 40:
            compiled(files, clock, 4, 0, 32, n)
    except Exception:
        print("compiled", traceback.format_exc()[-2500:], flush=True)
    for what, cp, rank, heads in cases[3:]:
        if left() > 8:
            measure(files, clock, what, cp, rank, heads, n, lambda: {"ring": Ring, "torch": Torch}[what](rank, cp))
    for keys in (n // 2, n, n * 4):
        if left() > 8:
            measure(files, clock, "whole", 0, 0, 32, n, lambda: Whole(False), keys)
    if left() > 8:
        measure(files, clock, "cudnn causal", 1, 0, 32, n, lambda: Cudnn(True))
    if clock.child:
        clock.child.terminate()


if __name__ == "__main__":
    main()
