#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""overlap.py - how much longer kernels take while a collective's channels hold multiprocessors and move data beside them.

    python3 truth/measure/overlap.py OUT_FOLDER [beside] [held] [pieces] [waits] [host_copies]

Needs PyTorch with CUDA, nvcc and nvidia-smi; about three minutes.  Writes OUT_FOLDER/overlap.csv and prints it:
  beside   a kernel alone and beside N blocks of 512 threads and 100 kB of shared memory, which copy at a given rate
           (overlap.cu); "carved" tells the product's library how many multiprocessors are left
  held     the same for two seconds, with clock and power
  host     a kernel beside copies to and from the host's memory, and those copies' rate
  pieces   a product in parts, one after the other or on three streams
  waits    kernels that wait for each other on one stream and on two"""

import ctypes
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent))
from passes_h200 import Clock
from steps_h200 import Out

# Multiprocessors and GB/s; 0: waits only, None: as fast as it goes.
BESIDE = [(4, 50), (8, 50), (8, 200), (16, 0), (16, 45), (16, 150), (16, 400), (24, 400), (32, 45), (32, 400), (16, None)]
SHAPES = [(8192, 8192, 8192), (8192, 7168, 8192), (8192, 8192, 3584), (4096, 6144, 4096), (4096, 4096, 14336), (16384, 5120, 5120),
          (2048, 12288, 12288), (8192, 1280, 8192), (8192, 28672, 4096)]
PIECES = [(8192, 2560, 8192), (8192, 8192, 1024), (8192, 7168, 8192), (4096, 6144, 4096), (8192, 3072, 12288), (2048, 12288, 3072)]
SHARED = 100 * 1024
BUFFER = 256 << 20


class Channels:
    """The blocks of overlap.cu on a stream of their own."""

    def __init__(self, folder):
        source, built = Path(__file__).resolve().parent / "overlap.cu", folder / "overlap.so"
        subprocess.run(["nvcc", "-O2", "-arch=sm_90", "-shared", "-Xcompiler", "-fPIC", "-o", built, source], check=True)
        self.library = ctypes.CDLL(str(built.resolve()))
        self.library.channels_start.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                                ctypes.c_longlong, ctypes.c_ulonglong, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        self.stream = torch.cuda.Stream(priority=-1)
        self.source, self.target = (torch.zeros(BUFFER, dtype=torch.uint8, device="cuda") for _ in range(2))
        self.stop, self.stopper = torch.zeros(1, dtype=torch.int32, device="cuda"), torch.cuda.Stream()
        self.copied = torch.zeros(256, dtype=torch.int64, device="cuda")
        self.blocks = 0

    def say(self, is_over):
        with torch.cuda.stream(self.stopper):
            self.stop.fill_(is_over)
        self.stopper.synchronize()

    def start(self, blocks, rate, limit_s=3.0):
        self.blocks = blocks
        self.say(0)
        period = -1 if rate == 0 else 0 if rate is None else max(1, round(65536 * blocks / rate))
        error = self.library.channels_start(blocks, SHARED, self.source.data_ptr(), self.target.data_ptr(), BUFFER, period, int(limit_s * 1e9),
                                            self.stop.data_ptr(), self.copied.data_ptr(), self.stream.cuda_stream)
        if error:
            raise RuntimeError(f"CUDA error {error}")
        self.began = time.perf_counter()
        time.sleep(0.002)

    def end(self):
        """GB/s that were copied."""
        self.say(1)
        self.stream.synchronize()
        return int(self.copied[: self.blocks].sum()) / (time.perf_counter() - self.began) / 1e9


def randn(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def product(kind, m, n, k):
    sets = []
    for _ in range(3):  # no cache holds all
        a, b = randn(m, k), randn(n, k)
        sets.append((a, b) if kind == "bf16" else (a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)))
    one, out, state = torch.ones((), device="cuda"), torch.empty(m, n, device="cuda", dtype=torch.bfloat16), [0]

    def call():
        a, b = sets[state[0] % 3]
        state[0] += 1
        if kind == "bf16":
            return torch.mm(a, b.t(), out=out)
        return torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)

    return call


def attention(backend, heads, kv, seq, dim, backward):
    q, k, v = (randn(1, n, seq, dim).requires_grad_(backward) for n in (heads, kv, kv))
    kind = {"cudnn": torch.nn.attention.SDPBackend.CUDNN_ATTENTION, "flash": torch.nn.attention.SDPBackend.FLASH_ATTENTION}[backend]

    def forward():
        with torch.nn.attention.sdpa_kernel(kind):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != kv)

    if not backward:
        return forward
    out, grad = forward(), randn(1, heads, seq, dim)
    return lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True)


def memory_call(what):
    a, b, out = (randn(8192, 16384) for _ in range(3))
    weight = randn(16384)
    return {"add": lambda: torch.add(a, b, out=out), "copy": lambda: out.copy_(a), "gelu": lambda: F.gelu(a),
            "norm": lambda: F.rms_norm(a, (16384,), weight), "softmax": lambda: torch.softmax(a, -1),
            "small add": lambda: torch.add(a[:256], b[:256], out=out[:256])}[what]


def calls():
    for kind in ("bf16", "fp8"):
        for m, n, k in SHAPES:
            yield "product", f"{kind} {m}x{n}x{k}", lambda: product(kind, m, n, k)
    for backend, heads, kv, seq, dim in (("cudnn", 32, 8, 8192, 128), ("cudnn", 8, 1, 8192, 128), ("flash", 32, 8, 8192, 128),
                                         ("cudnn", 12, 12, 2048, 128)):
        for backward in (False, True):
            name = f"{backend}{' backward' if backward else ''} h{heads} kv{kv} s{seq} d{dim}"
            yield "attention", name, lambda: attention(backend, heads, kv, seq, dim, backward)
    for what in ("add", "copy", "gelu", "norm", "softmax", "small add"):
        yield "memory", what, lambda: memory_call(what)


def timed(call, times):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / times


def carve(count):
    """How many multiprocessors products leave to others."""
    if hasattr(torch._C, "_set_sm_carveout_experimental"):
        torch._C._set_sm_carveout_experimental(count or None)
        return True
    return False


def in_bursts(call, us, begin=None, end=None):
    """Median of bursts of about 4 ms after a rest, so that the power limit has no say; and the rate beside it."""
    found, rates = [], []
    for _ in range(3):
        time.sleep(0.01)
        if begin:
            begin()
        call()
        found.append(timed(call, max(3, int(4e3 / us))))
        if end:
            rates.append(end())
    return statistics.median(found), statistics.median(rates) if rates else 0.0


def beside(out, channels):
    for kind, name, make in calls():
        try:
            call = make()
            for _ in range(4):
                call()
            torch.cuda.synchronize()
            us = timed(call, 5)
            alone, _ = in_bursts(call, us)
            out.row("beside", kind, name, 0, 0, round(alone, 2), 1.0, "", "", "")
            for blocks, rate in BESIDE:
                took, moved = in_bursts(call, us, lambda: channels.start(blocks, rate), channels.end)
                out.row("beside", kind, name, blocks, round(moved, 1), round(took, 2), round(took / alone, 4), "", "", "")
            if kind == "product":
                for blocks, rate in ((0, None), (16, 45), (16, 400), (32, 45), (32, 400)):
                    if not carve(blocks or 16):
                        break
                    call()
                    torch.cuda.synchronize()
                    took, moved = in_bursts(call, us, (lambda: channels.start(blocks, rate)) if blocks else None, channels.end if blocks else None)
                    out.row("beside", "carved", name, blocks, round(moved, 1), round(took, 2), round(took / alone, 4), "", "", "")
                carve(0)
        except Exception as e:  # one kind of kernel that is not there must not cost the rest
            print(f"{name}: {e}", file=sys.stderr)
            channels.say(1)
            torch.cuda.synchronize()


def held(out, channels, clock):
    makes = [("product", "bf16 8192x8192x8192", lambda: product("bf16", 8192, 8192, 8192)), ("product", "fp8 8192x8192x8192", lambda: product("fp8", 8192, 8192, 8192)),
             ("product", "bf16 4096x6144x4096", lambda: product("bf16", 4096, 6144, 4096)),
             ("attention", "cudnn backward h32 kv8 s8192 d128", lambda: attention("cudnn", 32, 8, 8192, 128, True)), ("memory", "add", lambda: memory_call("add"))]
    for kind, name, make in makes:
        call = make()
        for _ in range(4):
            call()
        us, alone = timed(call, 5), None
        for blocks, rate in ((0, 0), (16, 0), (16, 45), (16, 400), (32, 400)):
            if blocks:
                channels.start(blocks, rate)
            began, took = time.perf_counter(), []
            while time.perf_counter() - began < 2:
                one = timed(call, max(3, int(20e3 / us)))
                if time.perf_counter() - began > 1.2:
                    took.append(one)
            ended = time.perf_counter()
            moved = channels.end() if blocks else 0
            mean = statistics.mean(took)
            alone = alone or mean
            out.row("held", kind, name, blocks, round(moved, 1), round(mean, 2), round(mean / alone, 4), *clock.between(ended - 0.7, ended))
            time.sleep(0.3)


def host_copies(out):
    size = 64 << 20
    here, there = torch.empty(size, dtype=torch.uint8, device="cuda"), torch.empty(size, dtype=torch.uint8, pin_memory=True)
    back, other = torch.empty(size, dtype=torch.uint8, device="cuda"), torch.empty(size, dtype=torch.uint8, pin_memory=True)
    up, down = torch.cuda.Stream(), torch.cuda.Stream()

    def start(ways, count):
        for _ in range(count):
            if "d2h" in ways:
                with torch.cuda.stream(down):
                    there.copy_(here, non_blocking=True)
            if "h2d" in ways:
                with torch.cuda.stream(up):
                    back.copy_(other, non_blocking=True)

    for ways in (["d2h"], ["h2d"], ["d2h", "h2d"]):
        start(ways, 2)
        torch.cuda.synchronize()
        began = time.perf_counter()
        start(ways, 20)
        torch.cuda.synchronize()
        rate = 20 * size * len(ways) / (time.perf_counter() - began) / 1e9
        out.row("host", "copy", "+".join(ways), 0, round(rate, 1), "", "", "", "", "")
        for kind, name, make in (("product", "bf16 8192x8192x8192", lambda: product("bf16", 8192, 8192, 8192)),
                                 ("attention", "cudnn backward h32 kv8 s8192 d128", lambda: attention("cudnn", 32, 8, 8192, 128, True)),
                                 ("memory", "add", lambda: memory_call("add"))):
            call = make()
            for _ in range(4):
                call()
            torch.cuda.synchronize()
            us = timed(call, 5)
            alone, _ = in_bursts(call, us)
            took, _ = in_bursts(call, us, lambda: start(ways, 8), lambda: torch.cuda.synchronize() or 0.0)
            out.row("host", kind, f"{name} beside {'+'.join(ways)}", 0, round(rate, 1), round(took, 2), round(took / alone, 4), "", "", "")


def pieces(out):
    for kind in ("bf16", "fp8"):
        for m, n, k in PIECES:
            whole, _ = in_bursts(product(kind, m, n, k), 500)
            out.row("pieces", "product", f"{kind} {m}x{n}x{k}", 1, "", round(whole, 2), 1.0, "", "", "")
            for parts in (2, 4, 8):
                call = product(kind, m // parts, n, k)
                us, _ = in_bursts(call, 200)
                out.row("pieces", "product", f"{kind} {m}x{n}x{k}", parts, "", round(us * parts, 2), round(us * parts / whole, 4), "", "", "")
                streams, calls_of = [torch.cuda.Stream() for _ in range(3)], [product(kind, m // parts, n, k) for _ in range(3)]

                def spread():
                    main = torch.cuda.current_stream()
                    for s in streams:
                        s.wait_stream(main)
                    for i in range(parts):
                        with torch.cuda.stream(streams[i % 3]):
                            calls_of[i % 3]()
                    for s in streams:
                        main.wait_stream(s)

                # In a graph: the host would be the limit.
                for _ in range(3):
                    spread()
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    for _ in range(4):
                        spread()
                took, _ = in_bursts(graph.replay, 4 * whole)
                out.row("pieces", "three streams", f"{kind} {m}x{n}x{k}", parts, "", round(took / 4, 2), round(took / 4 / whole, 4), "", "", "")


def waits(out):
    other = torch.cuda.Stream()
    for size in (1 << 20, 1 << 24, 1 << 27):
        a, b = randn(size), randn(size)

        def chain(two):
            main = torch.cuda.current_stream()
            for _ in range(100):
                a.mul_(1.0)
                if two:
                    other.wait_stream(main)
                    with torch.cuda.stream(other):
                        b.mul_(1.0)
                    main.wait_stream(other)
                else:
                    b.mul_(1.0)

        for how in ("eager", "graph"):
            for two in (False, True):
                chain(two)
                torch.cuda.synchronize()
                if how == "graph":
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph):
                        chain(two)
                    call = graph.replay
                else:
                    call = lambda: chain(two)
                took, _ = in_bursts(call, 2000)
                out.row("waits", how, f"{'two streams' if two else 'one stream'}, {size * 2} bytes", 0, "", round(took / 200, 3), "", "", "", "")


def main():
    folder = Path(sys.argv[1])
    out = Out(folder, "overlap", ["part", "kind", "name", "blocks", "gbs", "us", "factor", "clock_mhz", "power_w", "celsius"])
    channels, clock = Channels(folder), Clock()
    wanted = sys.argv[2:]
    for part in (beside, held, pieces, waits, host_copies):
        if wanted and part.__name__ not in wanted:
            continue
        try:
            part(out, *({beside: (channels,), held: (channels, clock)}.get(part, ())))
            torch.cuda.empty_cache()
        except Exception as e:
            print(f"{part.__name__}: {e}", file=sys.stderr)
            torch.cuda.synchronize()
    clock.child.terminate()
    print((folder / "overlap.csv").read_text())


if __name__ == "__main__":
    main()
