#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""experts_host.py - what an eager layer of experts costs the host: `experts_host.py > experts_host.csv` on a machine with a GPU.

Issues the calls that Megatron-Core 0.15 with Transformer Engine 2.9 issues for one layer, with tensors so small that the
device never limits: a linear module quantises its input (current scaling: amax, scale, cast; MXFP8: one kernel), multiplies,
and keeps both for the backward pass; a grouped linear does that expert by expert, products on four streams
(multi_tensor_quantize_impl and multi_stream_cublas_gemm there); a router, a dispatcher that waits for the tokens of each
expert (its d2h_event), permutations, two all-to-alls each way.  Every module is an autograd function of its own, as there.
Attention is PyTorch's.  One row is the median of 24 chains of 12 layers."""

import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

HIDDEN, FFN, HEADS, KV, HEAD = 512, 256, 8, 2, 64
TOKENS, TOPK, EXPERTS = 256, 8, 128
F8 = torch.float8_e4m3fn
ONE = START = None
STREAMS = []


class Quantizer:
    def __init__(self, kind):
        self.kind, self.rowwise, self.columnwise = kind, True, True

    def set_usage(self, rowwise, columnwise):
        self.rowwise, self.columnwise = rowwise, columnwise


class Quantized:
    """What Transformer Engine keeps of a tensor: data by rows and by columns, scales."""

    def __init__(self, data, scale, quantizer):
        self.data, self.scale, self.quantizer = data, scale, quantizer

    def update_usage(self, rowwise, columnwise):
        self.quantizer.set_usage(rowwise, columnwise)


def quantize(x, q):
    if q.kind == "bf16":
        return x
    if q.kind == "cs":
        amax = x.amax()
        scale = 448.0 / amax
        return Quantized(x.to(F8), ONE, q) if scale is not None else None
    return Quantized(x.to(F8), ONE, q)


def product(a, b, out=None):
    """One call of cublasLt."""
    if isinstance(a, Quantized):
        return torch._scaled_mm(a.data, b.data.t(), scale_a=a.scale, scale_b=b.scale, out_dtype=torch.bfloat16)
    return torch.mm(a, b.t())


class LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, kept, transposed, qs, main_grad):
        flat = x.reshape(-1, x.shape[-1])
        xq = quantize(flat, qs[0])
        out = product(xq, kept)
        ctx.save_for_backward(weight)
        ctx.others = (xq, kept, transposed, qs, main_grad, x.shape)
        return out.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx, grad):
        xq, kept, transposed, qs, main_grad, shape = ctx.others
        flat = grad.reshape(-1, grad.shape[-1]).contiguous()
        gq = quantize(flat, qs[1])
        dx = product(gq, transposed)
        if isinstance(gq, Quantized):
            torch._scaled_mm(LinearFunction.spare[0], LinearFunction.spare[1].t(), scale_a=ONE, scale_b=ONE, out_dtype=torch.bfloat16)
        else:
            torch.mm(flat.t(), xq)
        main_grad.add_(1)
        return dx.view(shape), torch.empty_like(ctx.saved_tensors[0]), None, None, None, None


class Linear(nn.Module):
    def __init__(self, n, k, kind):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, k, device="cuda", dtype=torch.bfloat16))
        self.qs = [Quantizer(kind), Quantizer(kind), Quantizer(kind)]
        self.kept = quantize(self.weight.data, self.qs[2])
        self.transposed = quantize(self.weight.data.t().contiguous(), self.qs[2])
        self.main_grad = torch.zeros(1, device="cuda")

    def forward(self, x):
        for q in self.qs:
            q.set_usage(True, torch.is_grad_enabled())
        return LinearFunction.apply(x, self.weight, self.kept, self.transposed, self.qs, self.main_grad)


def on_streams(calls):
    """Products of experts: four other streams wait for this one and it for them.  Which stream a product goes to costs
    nothing there; here a context would cost more than the product, so all go to this one."""
    here = torch.cuda.current_stream()
    start = here.record_event()
    for s in STREAMS:
        s.wait_event(start)
    out = [call() for call in calls]
    for s in STREAMS:
        here.wait_event(s.record_event())
    return out


class GroupedFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, splits, kept, transposed, qs, grads, *weights):
        for q in qs[0]:
            q.set_usage(True, True)
        parts = [quantize(p, q) for p, q in zip(torch.split(x, splits), qs[0])]
        out = torch.empty(x.shape[0], weights[0].shape[0], dtype=x.dtype, device=x.device)
        on_streams([lambda a=a, b=b: product(a, b) for a, b in zip(parts, kept)])
        for p in parts:
            if isinstance(p, Quantized):
                p.update_usage(False, True)
        ctx.save_for_backward(*weights)
        ctx.others = (parts, splits, kept, transposed, qs, grads, x.shape)
        return out

    @staticmethod
    def backward(ctx, grad):
        parts, splits, kept, transposed, qs, grads, shape = ctx.others
        weights = ctx.saved_tensors
        gs = [quantize(p, q) for p, q in zip(torch.split(grad.contiguous(), splits), qs[1])]
        dx = torch.empty(shape, dtype=grad.dtype, device=grad.device)
        on_streams([lambda a=a, b=b: product(a, b) for a, b in zip(gs, transposed)])
        on_streams([lambda a=a, b=b: product(a, b) for a, b in zip(gs, transposed)])
        return (dx, None, None, None, None, None) + tuple(torch.empty_like(w) for w in weights)


class Grouped(nn.Module):
    def __init__(self, experts, n, k, kind):
        super().__init__()
        self.w = nn.ParameterList(nn.Parameter(torch.zeros(n, k, device="cuda", dtype=torch.bfloat16)) for _ in range(experts))
        self.qs = [[Quantizer(kind) for _ in range(experts)] for _ in range(3)]
        self.kept = [quantize(w.data, q) for w, q in zip(self.w, self.qs[2])]
        self.transposed = [quantize(w.data.t().contiguous(), q) for w, q in zip(self.w, self.qs[2])]
        self.grads = [torch.zeros(1, device="cuda") for _ in range(experts)]

    def forward(self, x, splits):
        return GroupedFunction.apply(x, splits, self.kept, self.transposed, self.qs, self.grads, *self.w)


class Permute(torch.autograd.Function):
    """One kernel each way: permute, unpermute and sort_chunks_by_idxs are such functions there."""

    @staticmethod
    def forward(ctx, x, index, rows):
        ctx.shape = x.shape
        ctx.index = index
        out = torch.empty(rows, x.shape[-1], dtype=x.dtype, device=x.device)
        out.zero_()
        return out

    @staticmethod
    def backward(ctx, grad):
        out = torch.empty(ctx.shape, dtype=grad.dtype, device=grad.device)
        out.zero_()
        return out, None, None


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, out_splits, in_splits):
        ctx.splits = (out_splits, in_splits)
        x = x.contiguous()
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x, out_splits, in_splits)
        return out

    @staticmethod
    def backward(ctx, grad):
        return AllToAll.apply(grad, ctx.splits[1], ctx.splits[0]), None, None


class Attention(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.norm = nn.RMSNorm(HIDDEN, device="cuda", dtype=torch.bfloat16)
        self.qkv = Linear((HEADS + 2 * KV) * HEAD, HIDDEN, kind)
        self.q_norm = nn.RMSNorm(HEAD, device="cuda", dtype=torch.bfloat16)
        self.k_norm = nn.RMSNorm(HEAD, device="cuda", dtype=torch.bfloat16)
        self.out = Linear(HIDDEN, HEADS * HEAD, kind)

    def forward(self, x):
        y = self.qkv(self.norm(x))
        q, k, v = torch.split(y.view(1, TOKENS, -1, HEAD), [HEADS, KV, KV], dim=2)
        q, k = self.q_norm(q), self.k_norm(k)
        q = Permute.apply(q.reshape(-1, HEAD), None, TOKENS * HEADS).view(1, TOKENS, HEADS, HEAD)  # rotations, a kernel each
        k = Permute.apply(k.reshape(-1, HEAD), None, TOKENS * KV).view(1, TOKENS, KV, HEAD)
        y = nn.functional.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                                       enable_gqa=True)
        return x + self.out(y.transpose(1, 2).reshape(TOKENS, -1))


class Experts(nn.Module):
    def __init__(self, experts, kind):
        super().__init__()
        self.experts = experts
        self.norm = nn.RMSNorm(HIDDEN, device="cuda", dtype=torch.bfloat16)
        self.gate = nn.Parameter(torch.randn(EXPERTS, HIDDEN, device="cuda"))
        self.fc1 = Grouped(experts, 2 * FFN, HIDDEN, kind)
        self.fc2 = Grouped(experts, HIDDEN, FFN, kind)
        self.copies = torch.cuda.Stream()
        self.known = None

    def know(self, x):
        with torch.no_grad():
            scores, chosen, loss = self.route(x)
            counts = chosen.sum(0)
            self.known = (scores, chosen, loss, counts, counts, counts.view(-1, self.experts).sum(1), torch.argsort(counts))

    def route(self, x):
        logits = nn.functional.linear(x.float(), self.gate)
        scores, ids = torch.topk(torch.softmax(logits, -1), TOPK)
        chosen = torch.zeros(TOKENS, EXPERTS, dtype=torch.bool, device="cuda").scatter(1, ids, True)
        loss = (scores.sum(0) * TOPK).sum() * 1e-4 + (chosen.sum(0) * 1.0).sum() * 0
        return scores, chosen, loss

    def forward(self, x):
        if self.known:  # router and what comes before the exchange are a CUDA graph: one call here
            h, scores, chosen, loss, counts, gathered, local, order = (torch.mul(x, 1.0), *self.known)
            return self.exchange(x, h, scores, chosen, loss, counts, gathered, local, order)
        h = self.norm(x)
        scores, chosen, loss = self.route(h)
        counts = chosen.sum(0)
        gathered = torch.empty_like(counts)
        dist.all_gather_into_tensor(gathered, counts)
        local = gathered.view(-1, self.experts).sum(1)
        order = torch.argsort(gathered)
        return self.exchange(x, h, scores, chosen, loss, counts, gathered, local, order)

    def exchange(self, x, h, scores, chosen, loss, counts, gathered, local, order):
        with torch.cuda.stream(self.copies):
            self.copies.wait_stream(torch.cuda.current_stream())
            host = [t.to("cpu", non_blocking=True) for t in (counts, gathered, local, order)]
            done = self.copies.record_event()
        rows = TOKENS * TOPK
        sent = Permute.apply(h, chosen, rows)
        probs = Permute.apply(scores.reshape(-1, 1), chosen, rows)
        done.synchronize()
        splits = host[2].tolist()
        splits = [rows // self.experts] * self.experts
        got = AllToAll.apply(sent, [rows], [rows])
        probs = AllToAll.apply(probs, [rows], [rows])
        got = Permute.apply(got, order, rows)
        probs = Permute.apply(probs, order, rows)
        y = self.fc1(got, splits)
        y = nn.functional.silu(y[:, :FFN]) * y[:, FFN:] * probs.to(y.dtype)
        y = self.fc2(y, splits)
        y = Permute.apply(y, order, rows)
        y = AllToAll.apply(y, [rows], [rows])
        y = Permute.apply(y, chosen, TOKENS)
        return x + y + loss.to(x.dtype)


LAYERS = 12


def median_of(f, n=24):
    """Microseconds of the host for one f() of a chain, and for its backward pass."""
    forward, backward = [], []
    for i in range(n + 4):
        y = START
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(LAYERS):
            y = f(y)
        middle = time.perf_counter()
        loss = y.sum()
        torch.cuda.synchronize()
        again = time.perf_counter()
        loss.backward()
        end = time.perf_counter()
        if i >= 4:
            forward.append((middle - start) * 1e6 / LAYERS)
            backward.append((end - again) * 1e6 / LAYERS)
    return statistics.median(forward), statistics.median(backward)


def main():
    global ONE, START
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    dist.init_process_group("nccl", rank=0, world_size=1)
    ONE = torch.ones(1, device="cuda")
    STREAMS.extend(torch.cuda.Stream() for _ in range(4))
    spare = torch.zeros(64, 64, device="cuda").to(F8)
    LinearFunction.spare = (spare, spare)
    START = torch.randn(TOKENS, HIDDEN, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    print("# microseconds of the host; truth/measure/experts_host.py,", torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    print("part,type,experts,forward_us,backward_us")
    linear = nn.Linear(HIDDEN, HIDDEN, bias=False, device="cuda", dtype=torch.bfloat16)
    print("linear,torch,1,%.1f,%.1f" % median_of(linear))
    for kind in ("bf16", "cs", "mx"):
        module = Linear(HIDDEN, HIDDEN, kind)
        print(f"linear,{kind},1,%.1f,%.1f" % median_of(module))
        attention = Attention(kind)
        print(f"attention,{kind},1,%.1f,%.1f" % median_of(attention))
        for experts in (2, 4, 8, 16, 32):
            grouped = Grouped(experts, HIDDEN, HIDDEN, kind)
            splits = [TOKENS // experts] * experts
            print(f"grouped,{kind},{experts},%.1f,%.1f" % median_of(lambda x: grouped(x, splits)))
            layer = Experts(experts, kind)
            print(f"experts,{kind},{experts},%.1f,%.1f" % median_of(layer))
            layer.know(START)
            print(f"experts behind a graph,{kind},{experts},%.1f,%.1f" % median_of(layer), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
