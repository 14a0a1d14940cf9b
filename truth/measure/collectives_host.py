#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""collectives_host.py - what a collective of PyTorch costs the host: `collectives_host.py > collectives_host.csv` on a machine
with a GPU.

Only the time until a call returns counts; chains are short enough for the launch queue.  First with a communicator of one
rank, for which NCCL does less than for several, then with eight ranks of which seven do not exist and whose collectives
return at once (PyTorch's fake process group): what FSDP, DDP and DTensor do around their collectives is the same.  A row of
"call" is one collective of 64 KiB; a row of "layer" is one layer of small products, plain and with what splits it over
ranks.  Each has the lowest fifth and the median of the runs."""

import multiprocessing
import os
import time

import torch
import torch.distributed as dist
from torch import nn

LAYERS, RUNS, CALLS = 8, 40, 64


def lowest_and_median(times):
    times = sorted(times)
    return times[len(times) // 5], times[len(times) // 2]


def timed(f, calls):
    """Microseconds of the host per call."""
    out = []
    for i in range(RUNS + 4):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            f()
        end = time.perf_counter()
        if i >= 4:
            out.append((end - start) * 1e6 / calls)
    return lowest_and_median(out)


class Block(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        return x + self.down(nn.functional.silu(self.up(self.norm(x))))


def attend(q, k, v):
    q, k, v = (t.view(1, t.shape[0], 4, -1).transpose(1, 2) for t in (q, k, v))
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(q.shape[2], -1)


class Llama(nn.Module):
    """Nine parameters; no rotation."""

    def __init__(self, width=256):
        super().__init__()
        self.norm, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        h = self.norm(x)
        x = x + self.o(attend(self.q(h), self.k(h), self.v(h)))
        h = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class Gpt(nn.Module):
    """Twelve parameters."""

    def __init__(self, width=256):
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.o(attend(*self.qkv(self.norm(x)).chunk(3, -1)))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Wide(Block):
    """A block whose weights come in sixteen parts more."""

    def __init__(self, width=256):
        super().__init__(width)
        self.parts = nn.ParameterList(nn.Parameter(torch.zeros(width)) for _ in range(16))

    def forward(self, x):
        return super().forward(x) + torch.stack(tuple(self.parts)).sum(0)


class Reduced(torch.autograd.Function):
    """As Megatron's mappings: the sum over ranks of what a rank computed."""

    @staticmethod
    def forward(ctx, x):
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class Copied(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        dist.all_reduce(grad)
        return grad


class SplitBlock(Block):
    def forward(self, x):
        return x + Reduced.apply(self.down(nn.functional.silu(self.up(Copied.apply(self.norm(x))))))


def stack(block=Block, dtype=torch.bfloat16):
    torch.manual_seed(0)
    return nn.Sequential(*[block() for _ in range(LAYERS)]).to("cuda", dtype)


def chain(model, x):
    """Microseconds of the host per layer: forward, backward."""
    forward, backward = [], []
    for i in range(RUNS // 2 + 4):
        y = x
        torch.cuda.synchronize()
        start = time.perf_counter()
        y = model(y)
        middle = time.perf_counter()
        loss = y.to_local().sum() if hasattr(y, "to_local") else y.sum()
        torch.cuda.synchronize()
        again = time.perf_counter()
        loss.backward()
        end = time.perf_counter()
        for p in model.parameters():
            p.grad = None
        if i >= 4:
            forward.append((middle - start) * 1e6 / LAYERS)
            backward.append((end - again) * 1e6 / LAYERS)
    return lowest_and_median(forward) + lowest_and_median(backward)


def say(rank, *fields):
    if rank == 0:
        print(",".join(f if isinstance(f, str) else f"{f:.1f}" for f in fields), flush=True)


def calls(rank, size):
    x = torch.zeros(32768, device="cuda", dtype=torch.bfloat16)
    part = torch.zeros(32768 // size, device="cuda", dtype=torch.bfloat16)
    other = torch.zeros_like(x)
    say(rank, "call", "product of 64 x 64", *timed(lambda a=torch.zeros(64, 64, device="cuda"): torch.mm(a, a), CALLS), 0., 0.)
    say(rank, "call", "add in place", *timed(lambda: x.add_(1), CALLS), 0., 0.)
    say(rank, "call", "all_reduce", *timed(lambda: dist.all_reduce(x), CALLS), 0., 0.)
    say(rank, "call", "all_reduce async and wait", *timed(lambda: dist.all_reduce(x, async_op=True).wait(), CALLS), 0., 0.)
    say(rank, "call", "all_gather_into_tensor", *timed(lambda: dist.all_gather_into_tensor(x, part), CALLS), 0., 0.)
    say(rank, "call", "reduce_scatter_tensor", *timed(lambda: dist.reduce_scatter_tensor(part, x), CALLS), 0., 0.)
    say(rank, "call", "all_to_all_single", *timed(lambda: dist.all_to_all_single(other, x), CALLS), 0., 0.)
    halves = [x.numel() // size] * size
    say(rank, "call", "all_to_all_single with sizes", *timed(lambda: dist.all_to_all_single(other, x, halves, halves), CALLS), 0., 0.)
    say(rank, "call", "broadcast", *timed(lambda: dist.broadcast(x, 0), CALLS), 0., 0.)
    import torch.distributed._functional_collectives as fc
    group = dist.group.WORLD
    say(rank, "call", "functional all_reduce and wait", *timed(lambda: fc.wait_tensor(fc.all_reduce(x, "sum", group)), CALLS), 0., 0.)
    say(rank, "call", "functional all_gather and wait", *timed(lambda: fc.wait_tensor(fc.all_gather_tensor(part, 0, group)), CALLS), 0., 0.)


def attempt(rank, name, model, x):
    """Models are made by functions, for some PyTorch has no such class."""
    try:
        say(rank, "layer", name, *chain(model(), x))
    except Exception as e:
        say(rank, f"# {name}: {e!r}"[:300].replace("\n", " "))


def fsdp2(mesh, block, mixed=False, **options):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    if mixed:
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    dtype = torch.float32 if mixed else torch.bfloat16
    model = stack(block, dtype) if block else compiled(dtype)
    for part in model:
        fully_shard(part, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def fsdp1(block, mixed=False):
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision
    options = {"use_orig_params": True, "device_id": torch.device("cuda", 0)}
    if mixed:
        options["mixed_precision"] = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = stack(block, torch.float32 if mixed else torch.bfloat16)
    for i in range(len(model)):
        model[i] = FSDP(model[i], **options)
    return FSDP(model, **options)


def by_dtensor(mesh, sequence=False):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                                   parallelize_module)
    model = stack()
    for block in model:
        parallelize_module(block, mesh, {"norm": SequenceParallel(sequence_dim=0),
                                         "up": ColwiseParallel(input_layouts=Shard(0)),
                                         "down": RowwiseParallel(output_layouts=Shard(0))} if sequence else
                           {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return model


def compiled(dtype=torch.bfloat16):
    """As torchtitan: a layer is compiled first, so what splits it runs outside the compiled code."""
    return nn.Sequential(*[torch.compile(block) for block in stack(Llama, dtype)])


def layers(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.nn.parallel import DistributedDataParallel as DDP
    x = torch.randn(64, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    mesh = init_device_mesh("cuda", (size,))
    for name, block in (("block", Block), ("wide", Wide), ("llama", Llama), ("gpt", Gpt)):
        attempt(rank, f"{name}: plain", lambda: stack(block), x)
        attempt(rank, f"{name}: FSDP2", lambda: fsdp2(mesh, block), x)
        attempt(rank, f"{name}: FSDP2 of fp32 weights", lambda: fsdp2(mesh, block, True), x)
        attempt(rank, f"{name}: FSDP2 kept after forward", lambda: fsdp2(mesh, block, True, reshard_after_forward=False), x)
        if size > 1:
            attempt(rank, f"{name}: FSDP1", lambda: fsdp1(block), x)
            attempt(rank, f"{name}: FSDP1 of fp32 weights", lambda: fsdp1(block, True), x)
    if size == 1:
        for name, block in (("block", Block), ("llama", Llama), ("gpt", Gpt)):
            attempt(rank, f"{name}: DDP", lambda: DDP(stack(block)), x)
        attempt(rank, "block: all-reduces each way", lambda: stack(SplitBlock), x)
    attempt(rank, "block: DTensor", lambda: by_dtensor(mesh), x)
    attempt(rank, "block: DTensor, sequence parallel", lambda: by_dtensor(mesh, True), x)
    attempt(rank, "llama: plain", lambda: stack(Llama), x)
    attempt(rank, "llama compiled: plain", compiled, x)
    attempt(rank, "llama compiled: FSDP2 of fp32 weights", lambda: fsdp2(mesh, None, True), x)


def about(rank, kind):
    say(rank, f"# {kind} on one {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, NCCL "
        f"{'.'.join(map(str, torch.cuda.nccl.version()))}; microseconds of the host")
    loop = []
    for _ in range(40):
        start = time.perf_counter()
        for _ in range(2000):
            pass
        loop.append((time.perf_counter() - start) * 1e6)
    say(rank, "host", "loop of 2000 passes", *lowest_and_median(loop), 0., 0.)
    linear = nn.Linear(256, 256, bias=False, device="cuda", dtype=torch.bfloat16)
    say(rank, "layer", "linear", *chain(nn.Sequential(*[linear] * LAYERS), torch.randn(64, 256, device="cuda", dtype=torch.bfloat16)))


def real():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29513")
    dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda", 0))
    dist.all_reduce(torch.ones(1, device="cuda"))
    about(0, "a communicator of one rank")
    calls(0, 1)
    layers(0, 1)
    dist.destroy_process_group()


def imagined(size):
    from torch.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group("fake", rank=0, world_size=size, store=FakeStore())
    about(0, f"{size} ranks whose collectives do nothing")
    layers(0, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    print("kind,what,low_us,median_us,backward_low_us,backward_median_us", flush=True)
    for part in ((real, ()), (imagined, (8,))):  # each in a process of its own: torch.compile slows the interpreter
        multiprocessing.get_context("spawn").Process(target=part[0], args=part[1]).start()
        for child in multiprocessing.active_children():
            child.join()
