#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kernels_h200.py - single operations of more families: products, norms, softmax, losses, sums, embeddings, attention, convolutions,
passes over memory, optimizers; shapes of models of many kinds, and drawn ones.

    python3 truth/measure/kernels_h200.py OUT_FOLDER [--seconds 200] [--part I/N] [--seed S]

Needs PyTorch with CUDA.  Writes kernels.csv with the columns of truth/kernels/h200_kernels: kernel_cold_us, the sum of the kernels of one
call by the profiler after 256 MiB were written (median of 3); graph_hot_us, one of up to 20 copies in a replayed CUDA graph (median
of 3).  Rows are measured in random order."""

import csv
import gc
import json
import math
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F

BEGAN, LIMIT = time.perf_counter(), 200.0
DEVICE = "cuda"
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "tf32": torch.float32}
aten = torch.ops.aten
ROOM = 24 << 30


def left():
    return LIMIT - (time.perf_counter() - BEGAN)


def rand(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device=DEVICE, dtype=dtype)


# ---- what is measured ----


def build(op, kind, d):
    """A call of the operation.  Its operands live as long as it does."""
    t = TYPES.get(kind, torch.bfloat16)
    g = d.get
    if op in ("gemm", "gemm_nn", "gemm_tn", "linear_bias", "linear_gelu", "linear_relu"):
        m, n, k = g("m"), g("n"), g("k")
        if kind == "fp8":
            a, b, one = rand(m, k).to(torch.float8_e4m3fn), rand(n, k).to(torch.float8_e4m3fn), torch.ones((), device=DEVICE)
            return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)
        if op == "gemm_nn":
            a, b = rand(m, k, dtype=t), rand(k, n, dtype=t)
            return lambda: torch.mm(a, b)
        if op == "gemm_tn":
            a, b = rand(k, m, dtype=t), rand(k, n, dtype=t)
            return lambda: torch.mm(a.t(), b)
        a, w, c = rand(m, k, dtype=t), rand(n, k, dtype=t), rand(n, dtype=t)
        if op == "gemm":
            return lambda: F.linear(a, w)
        if op == "linear_bias":
            return lambda: F.linear(a, w, c)
        return lambda: torch._addmm_activation(c, a, w.t(), use_gelu=op == "linear_gelu")
    if op.startswith("bmm"):
        b, m, n, k = g("b"), g("m"), g("n"), g("k")
        x = rand(b, k, m, dtype=t).transpose(1, 2) if op == "bmm_tn" else rand(b, m, k, dtype=t)
        y = rand(b, n, k, dtype=t).transpose(1, 2) if op == "bmm_nt" else rand(b, k, n, dtype=t)
        return lambda: torch.bmm(x, y)
    if "h" in d and "t" in d and op not in ("embedding_fwd", "embedding_bwd"):
        rows, h = g("t"), g("h")
        if op == "index_select":
            x, i = rand(rows, h, dtype=t), torch.randint(0, rows, (rows,), device=DEVICE)
            return lambda: torch.index_select(x, 0, i)
        if op == "index_copy":
            x, y, i = rand(rows, h, dtype=t), rand(rows, h, dtype=t), torch.randperm(rows, device=DEVICE)
            return lambda: torch.index_copy(x, 0, i, y)
        if op == "index_add":
            x, y, i = rand(rows, h, dtype=t), rand(rows, h, dtype=t), torch.randint(0, rows, (rows,), device=DEVICE)
            return lambda: x.index_add_(0, i, y)
        if op in ("swiglu_fwd", "swiglu_bwd"):
            x = rand(rows, 2 * h, dtype=t)
            return lambda: F.silu(x[:, :h]) * x[:, h:]
        x, w, b, y = rand(rows, h, dtype=t), rand(h, dtype=t), rand(h, dtype=t), rand(rows, h, dtype=t)
        if op == "layernorm_fwd":
            return lambda: F.layer_norm(x, (h,), w, b)
        if op == "layernorm_bwd":
            _, mean, rstd = aten.native_layer_norm(x, (h,), w, b, 1e-5)
            return lambda: aten.native_layer_norm_backward(y, x, (h,), mean, rstd, w, b, [True, True, True])
        if op == "rmsnorm_fwd":
            return lambda: aten._fused_rms_norm(x, (h,), w, 1e-5)
        if op == "rmsnorm_bwd":
            _, rstd = aten._fused_rms_norm(x, (h,), w, 1e-5)
            return lambda: aten._fused_rms_norm_backward(y, x, (h,), rstd, w, [True, True])
        if op == "softmax_fwd":
            return lambda: torch.softmax(x, -1)
        if op == "softmax_bwd":
            s = torch.softmax(x, -1)
            return lambda: aten._softmax_backward_data(y, s, -1, t)
        if op == "sum_rows":
            return lambda: x.sum(0)
        if op == "sum_columns":
            return lambda: x.sum(1)
        if op == "topk8":
            return lambda: torch.topk(x, 8, -1)
        if op in ("cat_first", "cat_last"):
            return lambda: torch.cat((x, y), 0 if op == "cat_first" else -1)
        if op == "cumsum":
            return lambda: torch.cumsum(x, 0)
    if op in ("cross_entropy_fwd", "cross_entropy_bwd"):
        x, i = rand(g("t"), g("v"), dtype=t), torch.randint(0, g("v"), (g("t"),), device=DEVICE)
        if op.endswith("fwd"):
            return lambda: F.cross_entropy(x, i)
        logs = torch.log_softmax(x, -1)
        del x
        _, weight = aten.nll_loss_forward(logs, i, None, 1, -100)
        one = torch.ones((), device=DEVICE, dtype=t)

        def back():
            d = aten.nll_loss_backward(one, logs, i, None, 1, -100, weight)
            aten._log_softmax_backward_data(d, logs, 1, t)
        return back
    if op in ("embedding_fwd", "embedding_bwd"):
        i = torch.randint(0, g("v"), (g("t"),), device=DEVICE)
        if op.endswith("fwd"):
            w = rand(g("v"), g("h"), dtype=t)
            return lambda: F.embedding(i, w)
        y = rand(g("t"), g("h"), dtype=t)
        return lambda: aten.embedding_dense_backward(y, i, g("v"), -1, False)
    if op in ("conv_fwd", "conv_bwd"):
        back = op == "conv_bwd"
        b, cin, cout, hw, k, s = (g(x) for x in ("b", "cin", "cout", "hw", "k", "stride"))
        x = rand(b, cin, hw, hw, dtype=t).to(memory_format=torch.channels_last)
        w = rand(cout, cin, k, k, dtype=t).to(memory_format=torch.channels_last)
        if not back:
            return lambda: F.conv2d(x, w, stride=s, padding=k // 2)
        y = torch.randn_like(F.conv2d(x, w, stride=s, padding=k // 2))
        return lambda: aten.convolution_backward(y, x, w, None, [s, s], [k // 2] * 2, [1, 1], False, [0, 0], 1, [cin > 4, True, False])
    if op in ("batchnorm_fwd", "batchnorm_bwd"):
        x = rand(g("b"), g("c"), g("hw"), g("hw"), dtype=t).to(memory_format=torch.channels_last)
        w, b, mean, var = (rand(g("c"), dtype=torch.float32) for _ in range(4))
        if op.endswith("fwd"):
            return lambda: F.batch_norm(x, mean, var.abs(), w, b, True)
        x.requires_grad_()
        y = F.batch_norm(x, mean, var.abs(), w.requires_grad_(), b.requires_grad_(), True)
        d = torch.randn_like(y)
        return lambda: torch.autograd.grad(y, (x, w, b), d, retain_graph=True)
    if op == "conv_depthwise7":
        x, w = rand(g("b"), g("c"), g("hw"), g("hw"), dtype=t).to(memory_format=torch.channels_last), rand(g("c"), 1, 7, 7, dtype=t)
        return lambda: F.conv2d(x, w, padding=3, groups=g("c"))
    if op == "max_pool":
        x = rand(g("b"), g("c"), g("hw"), g("hw"), dtype=t).to(memory_format=torch.channels_last)
        return lambda: F.max_pool2d(x, 3, 2, 1)
    if op.startswith("sdpa"):
        def one(heads, length):
            return rand(g("b"), length, heads, g("d"), dtype=t).transpose(1, 2)
        q, k, v = one(g("h"), g("s")), one(g("kv"), g("t")), one(g("kv"), g("t"))
        more = dict(is_causal=bool(g("causal")), enable_gqa=g("h") != g("kv"))
        if op != "sdpa_bwd":
            return lambda: F.scaled_dot_product_attention(q, k, v, **more)
        for x in (q, k, v):
            x.requires_grad_()
        y = F.scaled_dot_product_attention(q, k, v, **more)
        d = torch.randn_like(y)
        return lambda: torch.autograd.grad(y, (q, k, v), d, retain_graph=True)
    if op in ("adamw_fused", "adamw_foreach", "clip_grad_norm"):
        each = g("n") // g("parts")
        some = [torch.nn.Parameter(rand(each, dtype=t)) for _ in range(g("parts"))]
        for p in some:
            p.grad = torch.randn_like(p)
        if op.startswith("clip"):
            return lambda: torch.nn.utils.clip_grad_norm_(some, 1.0)
        optimizer = torch.optim.AdamW(some, lr=1e-4, fused=op.endswith("fused"), foreach=op.endswith("foreach"))
        return optimizer.step
    n = g("n")
    if op == "sort":
        x = rand(n, dtype=t)
        return lambda: torch.sort(x)
    x = rand(n, dtype=t)
    if op == "sum_all":
        return lambda: x.sum()
    if op == "cumsum":
        return lambda: torch.cumsum(x, 0)
    if op in ("gelu", "silu", "relu", "dropout", "neg", "exp"):
        f = {"gelu": F.gelu, "silu": F.silu, "relu": F.relu, "dropout": lambda v: F.dropout(v, 0.1), "neg": torch.neg, "exp": torch.exp}[op]
        return lambda: f(x)
    if op == "clone":
        return lambda: x.clone()
    if op == "to_fp32":
        return lambda: x.float()
    if op in ("zero_", "fill_"):
        return (lambda: x.zero_()) if op == "zero_" else (lambda: x.fill_(1.5))
    y = rand(n, dtype=t)
    if op in ("add", "add_"):
        return (lambda: x + y) if op == "add" else (lambda: x.add_(y))
    if op == "silu_mul":
        return lambda: F.silu(x) * y
    if op == "gelu_bwd":
        return lambda: aten.gelu_backward(y, x)
    if op == "addcmul":
        z = rand(n, dtype=t)
        return lambda: torch.addcmul(x, y, z)
    raise ValueError(op)


# ---- which shapes ----

# width, heads' width of queries, of keys and values, inner width, vocabulary: of models of many kinds
MODELS = {"phi2": (2560, 2560, 2560, 10240, 51200), "gemma_2b": (2048, 2048, 256, 16384, 256000), "gemma2_9b": (3584, 4096, 2048, 14336, 256000),
          "mistral_7b": (4096, 4096, 1024, 14336, 32000), "falcon_7b": (4544, 4544, 64, 18176, 65024), "opt_13b": (5120, 5120, 5120, 20480, 50272),
          "pythia_410m": (1024, 1024, 1024, 4096, 50304), "smollm_135m": (576, 576, 192, 1536, 49152), "smollm_360m": (960, 960, 320, 2560, 49152),
          "tinyllama": (2048, 2048, 256, 5632, 32000), "llama_70b": (8192, 8192, 1024, 28672, 128256), "yi_6b": (4096, 4096, 512, 11008, 64000),
          "stablelm_3b": (2560, 2560, 2560, 6912, 50304), "mpt_7b": (4096, 4096, 4096, 16384, 50432), "starcoder2_3b": (3072, 3072, 256, 12288, 49152),
          "qwen2_7b": (3584, 3584, 512, 18944, 152064), "whisper_small": (768, 768, 768, 3072, 51865), "t5_large": (1024, 1024, 1024, 2816, 32128),
          "deberta_base": (768, 768, 768, 3072, 128100), "vit_so": (1152, 1152, 1152, 4304, 0), "dit_xl": (1152, 1152, 1152, 4608, 0),
          "sdxl": (1280, 1280, 1280, 5120, 0), "esm2_650m": (1280, 1280, 1280, 5120, 33), "gptj_6b": (4096, 4096, 4096, 16384, 50400),
          "mamba_1b": (2048, 4096, 96, 4096, 50280), "granite_3b": (2560, 2560, 640, 8192, 49155), "olmo_1b": (2048, 2048, 2048, 8192, 50280),
          "bloom_1b": (1536, 1536, 1536, 6144, 250880)}


def log_between(rng, low, high, multiple=1):
    return max(multiple, round(math.exp(rng.uniform(math.log(low), math.log(high))) / multiple) * multiple)


def shapes(rng):
    """family, op, type, dims"""
    for name, (d, q, kv, ff, vocab) in MODELS.items():
        pairs = {(d + 0 if d == q else q, d), (q + 2 * kv, d), (d, q), (ff, d), (2 * ff, d), (d, ff)} | ({(vocab, d)} if vocab else set())
        family = "model_" + name
        for n, k in sorted(pairs):
            for m in rng.sample([1, 2, 8, 24, 32, 96, 192, 320, 512, 1024, 1536, 3072, 4096, 6144, 8192, 12288, 16384], 5):
                if m * n < 1 << 30:
                    yield family, "gemm", "bf16", dict(m=m, n=n, k=k)
            for m in rng.sample([512, 1024, 2048, 3072, 4096, 8192, 16384], 2):
                if m * n < 1 << 30:
                    yield family, "gemm_nn", "bf16", dict(m=m, n=k, k=n)
                    yield family, "gemm_tn", "bf16", dict(m=n, n=k, k=m)
            if n < 65536:
                yield family, "linear_bias", "bf16", dict(m=rng.choice([64, 256, 1024, 2048, 4096, 8192, 197 * 32, 577 * 8]), n=n, k=k)
        for t in rng.sample([32, 256, 1024, 2048, 4096, 8192, 16384, 32768], 3):
            for op in ("layernorm_fwd", "layernorm_bwd", "rmsnorm_fwd", "rmsnorm_bwd"):
                yield "norm_" + name, op, "bf16", dict(t=t, h=d)
            yield "norm_" + name, "layernorm_fwd", "fp32", dict(t=t, h=d)
            yield "norm_" + name, "layernorm_bwd", "fp32", dict(t=t, h=d)
            yield "norm_" + name, "sum_rows", "bf16", dict(t=t, h=rng.choice([d, ff]))
            yield "norm_" + name, "sum_columns", "bf16", dict(t=t, h=rng.choice([d, ff]))
            yield "norm_" + name, "sum_rows", "fp32", dict(t=t, h=d)
        if vocab:
            for t in rng.sample([64, 512, 1024, 2048, 4096, 8192, 16384], 3):
                yield "embed_" + name, "embedding_fwd", "bf16", dict(t=t, v=vocab, h=d)
                yield "embed_" + name, "embedding_bwd", "bf16", dict(t=t, v=vocab, h=d)
                for kind in ("bf16", "fp32"):
                    if t * vocab < 1 << 30:
                        yield "loss_" + name, "cross_entropy_fwd", kind, dict(t=t, v=vocab)
                        yield "loss_" + name, "cross_entropy_bwd", kind, dict(t=t, v=vocab)
    for i in range(10):  # drawn products: multiples of 8, odd and even rows
        for op in ["gemm"] * 8 + ["gemm_nn"] * 3 + ["gemm_tn"] * 3 + ["linear_bias"] * 4 + ["linear_gelu"] * 2 + ["linear_relu"] * 2:
            yield "drawn8_%d" % i, op, "bf16", dict(m=log_between(rng, 8, 16384, 8), n=log_between(rng, 16, 16384, 8), k=log_between(rng, 16, 16384, 8))
        for op in ["gemm"] * 7 + ["gemm_nn"] * 4 + ["gemm_tn"] * 4:
            for multiple in (1, 2):
                yield "drawn%d_%d" % (multiple, i), op, "bf16", dict(m=log_between(rng, 8, 8192), n=log_between(rng, 4, 8192, multiple),
                                                                     k=log_between(rng, 4, 8192, multiple))
        for op in ("bmm", "bmm_nt", "bmm_tn"):
            for _ in range(4):
                yield "bmm_drawn_%d" % i, op, "bf16", dict(b=log_between(rng, 2, 256), m=log_between(rng, 16, 4096, 8), n=log_between(rng, 16, 4096, 8),
                                                           k=log_between(rng, 16, 2048, 8))
        for kind in ("fp16", "fp32", "tf32", "fp8"):
            for _ in range(7):
                small = 4096 if kind == "fp32" else 16384
                yield "%s_drawn_%d" % (kind, i), "gemm", kind, dict(m=log_between(rng, 16, small, 16), n=log_between(rng, 16, small, 16),
                                                                    k=log_between(rng, 16, small, 16))
    for name, vocab in (("gpt2", 50257), ("bert", 30522), ("whisper", 51865), ("neox", 50277), ("gemma", 256000), ("granite", 49155), ("t5", 32128)):
        for m in (256, 1024, 2048, 4096, 8192):
            d = rng.choice([512, 768, 1024, 1600, 2048])
            yield "vocab_" + name, "gemm", "bf16", dict(m=m, n=vocab, k=d)
            yield "vocab_" + name, "gemm_nn", "bf16", dict(m=m, n=d, k=vocab)
            yield "vocab_" + name, "gemm_tn", "bf16", dict(m=vocab, n=d, k=m)
    for h in (96, 128, 197, 256, 384, 512, 577, 768, 1024, 1025, 1500, 2048, 3000, 4096, 8192, 16384, 32768, 65536):
        for t in rng.sample([512, 2048, 8192, 24576, 65536, 196608], 3):
            if t * h < 1 << 29:
                for kind in ("bf16", "fp32"):
                    yield "softmax_%d" % h, "softmax_fwd", kind, dict(t=t, h=h)
                    yield "softmax_%d" % h, "softmax_bwd", kind, dict(t=t, h=h)
    for h in (64, 160, 512, 1152, 2304, 5120, 12288):
        for t in rng.sample([1024, 4096, 16384, 65536], 2):
            if t * h < 1 << 28:
                for op in ("index_select", "index_copy", "index_add", "swiglu_fwd", "topk8", "cat_first", "cat_last", "sum_rows", "sum_columns"):
                    yield "rows_%dx%d" % (t, h), op, "bf16", dict(t=t, h=h)
    for op, kind in [(o, k) for o in ("add", "clone", "gelu", "sum_all", "silu", "silu_mul", "gelu_bwd", "dropout", "neg", "exp", "to_fp32", "relu", "fill_")
                     for k in ("bf16", "fp32") if not (k == "fp32" and o in ("silu", "silu_mul", "gelu_bwd", "dropout", "neg", "exp", "to_fp32", "relu"))] + [
                         ("addcmul", "fp32"), ("cumsum", "fp32")]:
        for i in range(3):
            for _ in range(3):
                yield "size_%s_%s_%d" % (op, kind, i), op, kind, dict(n=log_between(rng, 2048, 1 << 28, 8))
    for i in range(3):
        for op, kind in (("adamw_fused", "bf16"), ("adamw_fused", "fp32"), ("adamw_foreach", "bf16"), ("adamw_foreach", "fp32"), ("clip_grad_norm", "bf16"),
                         ("clip_grad_norm", "fp32")):
            for _ in range(4):
                parts = rng.choice([1, 4, 20, 75, 148, 290, 600])
                yield "optim_drawn_%d" % i, op, kind, dict(n=parts * log_between(rng, 2048, (1 << 29) // parts, 8), parts=parts)
    for n in (20000, 150000, 1 << 20, 5000000, 30000000):
        yield "sort_%d" % n, "sort", "fp32", dict(n=n)
    for name, stages in (("resnet", [(64, 56), (128, 28), (256, 14), (512, 7)]), ("wide", [(128, 56), (256, 28), (512, 14), (1024, 7)]),
                         ("vgg", [(64, 112), (128, 56), (256, 28), (512, 14)]), ("unet", [(320, 64), (640, 32), (1280, 16), (1280, 8)]),
                         ("efficient", [(24, 56), (40, 28), (112, 14), (192, 7)]), ("vae", [(128, 128), (256, 64), (512, 32), (512, 16)]),
                         ("dense", [(96, 56), (160, 28), (320, 14), (640, 7)])):
        for c, hw in stages:
            for k, s, out in ((3, 1, c), (1, 1, 4 * c), (1, 1, c), (3, 2, 2 * c), (5, 1, c)):
                b = rng.choice([2, 4, 12, 32, 96, 160])
                if b * max(c, out) * hw * hw < 1 << 28:
                    yield "conv_" + name, "conv_fwd", "bf16", dict(b=b, cin=c, cout=out, hw=hw, k=k, stride=s)
                    yield "conv_" + name, "conv_bwd", "bf16", dict(b=b, cin=c, cout=out, hw=hw, k=k, stride=s)
            b = rng.choice([4, 16, 64, 128])
            for op in ("batchnorm_fwd", "batchnorm_bwd", "conv_depthwise7", "max_pool"):
                if b * c * hw * hw < 1 << 28:
                    yield "bn_" + name, op, "bf16", dict(b=b, c=c, hw=hw)
    for cin, cout, k, s, hw in ((3, 64, 7, 2, 224), (3, 32, 3, 2, 224), (3, 96, 4, 4, 224), (3, 768, 16, 16, 224), (4, 320, 3, 1, 64), (3, 64, 3, 1, 224)):
        for b in (4, 24, 96):
            yield "conv_stem%d" % k, "conv_fwd", "bf16", dict(b=b, cin=cin, cout=cout, hw=hw, k=k, stride=s)
    for name, h, kv, d in (("mha64", 12, 12, 64), ("mha64w", 20, 20, 64), ("gqa128", 32, 8, 128), ("gqa128w", 40, 8, 128), ("mqa64", 71, 1, 64), ("mha96", 16, 16, 96),
                           ("gqa96", 24, 8, 96), ("mha80", 32, 32, 80), ("gqa64", 15, 5, 64), ("tp128", 8, 1, 128), ("mha128", 16, 16, 128), ("vit72", 16, 16, 72)):
        for b, s, causal in rng.sample([(1, 300, 1), (64, 128, 1), (16, 512, 1), (8, 1024, 1), (4, 2048, 1), (2, 4096, 1), (1, 8192, 1), (1, 16384, 1), (32, 197, 0),
                                        (8, 577, 0), (16, 512, 0), (4, 1500, 0), (2, 4096, 0), (1, 6000, 0)], 6):
            yield "attn_" + name, "sdpa_fwd", "bf16", dict(b=b, h=h, kv=kv, s=s, t=s, d=d, causal=causal)
            yield "attn_" + name, "sdpa_bwd", "bf16", dict(b=b, h=h, kv=kv, s=s, t=s, d=d, causal=causal)
        if d in (64, 128):
            for b, t in rng.sample([(1, 500), (1, 3000), (1, 20000), (6, 1000), (12, 4000), (24, 700), (48, 2000), (100, 1200)], 5):
                yield "decode_" + name, "sdpa_decode", "bf16", dict(b=b, h=h, kv=kv, s=1, t=t, d=d, causal=0)


# ---- how ----

SIDE = None


def hot_us(call, copies):
    graph = torch.cuda.CUDAGraph()
    SIDE.synchronize()
    graph.capture_begin(capture_error_mode="relaxed")
    try:
        for _ in range(copies):
            call()
    finally:
        graph.capture_end()
    graph.replay()
    times = []
    for _ in range(3):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(SIDE)
        graph.replay()
        b.record(SIDE)
        SIDE.synchronize()
        times.append(a.elapsed_time(b) * 1e3 / copies)
    return statistics.median(times)


def cold_of(calls, flush):
    """Median of 3 of the sum of the kernels, and their number: of each call, in one profile."""
    from torch.profiler import ProfilerActivity, profile, record_function
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        for i, call in enumerate(calls):
            for _ in range(3):
                flush.fill_(1)
                SIDE.synchronize()
                with record_function("K:%d" % i):
                    call()
                    SIDE.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        p.export_chrome_trace(f.name)
        events = json.load(open(f.name, encoding="utf-8"))["traceEvents"]
    spans = sorted((e["ts"], e["ts"] + e["dur"], int(e["name"][2:])) for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("K:"))
    owner, at = {}, 0
    for e in sorted((e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")), key=lambda e: e["ts"]):
        while at < len(spans) and spans[at][1] < e["ts"]:
            at += 1
        if at < len(spans) and spans[at][0] <= e["ts"]:
            owner[e["args"].get("correlation")] = at
    sums = [[0.0, 0] for _ in spans]
    for e in events:
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and e["args"].get("correlation") in owner:
            s = sums[owner[e["args"]["correlation"]]]
            s[0] += e["dur"]
            s[1] += 1
    out = {}
    for (_, _, i), s in zip(spans, sums):
        out.setdefault(i, []).append(s)
    return {i: (statistics.median(x[0] for x in s), int(statistics.median(x[1] for x in s))) for i, s in out.items()}


def main():
    global LIMIT, SIDE
    part, parts, seed = 0, 1, 1
    words = sys.argv[2:]
    if "--seconds" in words:
        LIMIT = float(words[words.index("--seconds") + 1])
    if "--part" in words:
        part, parts = map(int, words[words.index("--part") + 1].split("/"))
    if "--seed" in words:
        seed = int(words[words.index("--seed") + 1])
    rng = random.Random(seed)
    seen, rows = set(), []
    for row in shapes(rng):
        key = (*row[1:3], str(row[3]))
        if key not in seen:
            seen.add(key)
            rows.append(row)
    rng.shuffle(rows)
    rows = rows[part::parts]
    print(len(rows), "rows", flush=True)
    file = open(Path(sys.argv[1]) / ("kernels%s.csv" % (part or "")), "w", newline="", encoding="utf-8")
    out = csv.writer(file)
    out.writerow("family,op,type,dims,cold_us,kernel_cold_us,graph_hot_us,kernels".split(","))
    flush = torch.empty(256 << 20, dtype=torch.uint8, device=DEVICE)
    SIDE = torch.cuda.Stream()
    failed = {}
    with torch.cuda.stream(SIDE):
        at = 0
        while at < len(rows) and left() > 4:
            batch = []
            began = time.perf_counter()
            while at < len(rows) and len(batch) < 40 and torch.cuda.memory_allocated() < ROOM and time.perf_counter() - began < 6:
                family, op, kind, d = rows[at]
                at += 1
                torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
                try:
                    call = build(op, kind, d)
                    call()
                    SIDE.synchronize()
                    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                    a.record(SIDE)
                    call()
                    b.record(SIDE)
                    SIDE.synchronize()
                    ms = a.elapsed_time(b)
                    hot = ""
                    if op not in ("adamw_fused", "adamw_foreach", "clip_grad_norm"):
                        try:
                            copies = 20 if ms < 2 else 6 if ms < 10 else 3
                            hot = round(hot_us(call, copies), 3)
                        except Exception as e:
                            failed[op, "graph"] = repr(e)[:150]
                    batch.append((family, op, kind, d, call, hot))
                    del call
                except Exception as e:
                    failed[op, kind] = repr(e)[:300]
            try:
                cold = {}
                for tf32 in (False, True):
                    some = [i for i, r in enumerate(batch) if (r[2] == "tf32") == tf32]
                    torch.backends.cuda.matmul.allow_tf32 = tf32
                    if some:
                        found = cold_of([batch[i][4] for i in some], flush)
                        cold.update({some[j]: x for j, x in found.items()})
                for i, (family, op, kind, d, _, hot) in enumerate(batch):
                    us, number = cold.get(i, ("", ""))
                    out.writerow([family, op, kind, " ".join("%s=%d" % x for x in d.items()), "", round(us, 3) if us != "" else "", hot, number])
                file.flush()
            except Exception as e:
                failed["cold", ""] = repr(e)[:300]
            batch.clear()
            gc.collect()
            if torch.cuda.memory_reserved() > 70 << 30:
                torch.cuda.empty_cache()
            print(at, "left", round(left()), flush=True)
    print("failed", json.dumps({" ".join(k): v for k, v in failed.items()}, indent=1), flush=True)
    file.close()


if __name__ == "__main__":
    main()
