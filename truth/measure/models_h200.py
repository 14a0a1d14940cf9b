#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""models_h200.py - operators of training steps and forward passes of models of many kinds (transformers, torchvision), and the host's
time of small models' forward passes; none of them is in truth/tables.

    python3 truth/measure/models_h200.py OUT_FOLDER [--seconds 200] [host] [host_ops] [language] [vision]

Needs PyTorch with CUDA, torchvision and transformers, and passes_h200.py and steps_h200.py beside it.  Writes passes.csv, operators.csv,
host.csv, host_ops.csv as passes_h200.py does."""

import itertools
import random
import statistics
import sys
import time
import traceback
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent))
import passes_h200
from passes_h200 import graph_of, operators_of, part_host_ops, timed
from steps_h200 import DEVICE, TYPE, Out, batch_of, free, make, step

BEGAN, LIMIT = time.perf_counter(), 200.0


def left():
    return LIMIT - (time.perf_counter() - BEGAN)


class Files:
    def __init__(self, folder, words):
        if "language" in words or "vision" in words:
            self.passes = Out(folder, "passes", ["model", "mode", "shape", "eager_ms", "graph_ms", "busy_ms", "kernels"])
            self.operators = Out(folder, "operators", ["model", "mode", "op", "shapes", "types", "strides", "arguments", "calls", "kernels", "us", "names"])
        if "host" in words:
            self.host = Out(folder, "host", ["model", "what", "layers", "median_ms", "least_ms", "most_ms"])
        if "host_ops" in words:
            self.ops = Out(folder, "host_ops", ["op", "nograd_us", "grad_us", "backward_us"])

    def add_pass(self, model, mode, shape, call, optimizer=None):
        found, calls, busy, number = operators_of(call)
        eager, graph = timed(call, 3, 2)[0], ""
        try:
            for group in optimizer.param_groups if optimizer else []:
                group["capturable"] = True
            replay = graph_of(call, 1)
            graph = timed(replay.replay, 3, 2)[0]
            del replay
        except Exception as e:
            print(model, mode, "no graph:", repr(e)[:120], flush=True)
        self.passes.row(model, mode, shape, eager, graph, round(busy, 4), number)
        for key, (n, us, names) in sorted(found.items(), key=lambda item: -item[1][1]):
            self.operators.row(model, mode, *key, calls[key], n, round(us / calls[key], 3), " | ".join(f"{k} x{v}" for k, v in names.items())[:120])


def train_and_forward(files, name, shape, model, loss, forward):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def train():
        loss().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(2):
        train()
    files.add_pass(name, "train", shape, train, optimizer=optimizer)
    model.eval()
    with torch.no_grad():
        forward()
        files.add_pass(name, "forward", shape, forward)


# ---- language ----


def language_models():
    import transformers as t
    two = dict(num_hidden_layers=2)

    def masked(kind, **more):  # encoders
        return lambda: getattr(t, kind + "ForMaskedLM")(getattr(t, kind + "Config")(**more))

    def causal(kind, **more):
        return lambda: getattr(t, kind + "ForCausalLM")(getattr(t, kind + "Config")(**more))

    def llama(d, heads, kv, ff, vocab, **more):
        return dict(hidden_size=d, num_attention_heads=heads, num_key_value_heads=kv, intermediate_size=ff, vocab_size=vocab, use_cache=False, **two, **more)

    return {
        "hf_gpt2": (lambda: t.GPT2LMHeadModel(t.GPT2Config(n_layer=3, n_embd=896, n_head=14, use_cache=False)), 50257, 8, 1024),
        "hf_opt": (causal("OPT", hidden_size=1536, num_attention_heads=24, ffn_dim=6144, use_cache=False, **two), 50272, 4, 1024),
        "hf_neox": (causal("GPTNeoX", hidden_size=1792, num_attention_heads=14, intermediate_size=7168, vocab_size=50304, use_cache=False, **two), 50304, 4, 1024),
        "hf_llama": (causal("Llama", **llama(1280, 20, 5, 3584, 48000)), 48000, 8, 768),
        "hf_llama_wide": (causal("Llama", **llama(5120, 40, 8, 13824, 64000)), 64000, 1, 3072),
        "hf_qwen2": (causal("Qwen2", **llama(1536, 12, 2, 8960, 151936)), 151936, 2, 1536),
        "hf_mistral": (causal("Mistral", **llama(3072, 24, 8, 9216, 32768)), 32768, 2, 2048),
        "hf_phi": (causal("Phi", **llama(2560, 32, 32, 10240, 51200)), 51200, 2, 1024),
        "hf_gemma": (causal("Gemma", **llama(2048, 8, 1, 16384, 100000, head_dim=256)), 100000, 2, 1024),
        "hf_granite": (causal("Granite", **llama(1536, 12, 4, 4096, 49155)), 49155, 6, 640),
        "hf_olmo2": (causal("Olmo2", **llama(1024, 16, 16, 4096, 50280)), 50280, 12, 512),
        "hf_starcoder2": (causal("Starcoder2", **llama(1152, 18, 2, 4608, 49152)), 49152, 8, 1024),
        "hf_mixtral": (causal("Mixtral", **llama(1024, 16, 4, 2816, 32000, num_local_experts=8)), 32000, 4, 1024),
        "hf_roberta": (masked("Roberta", hidden_size=1024, num_attention_heads=16, intermediate_size=4096, vocab_size=50265, **two), 50265, 16, 384),
        "hf_electra": (masked("Electra", hidden_size=640, embedding_size=640, num_attention_heads=10, intermediate_size=2560, **two), 30522, 48, 192),
        "hf_distilbert": (lambda: t.DistilBertForMaskedLM(t.DistilBertConfig(n_layers=2, dim=896, n_heads=14, hidden_dim=3584)), 30522, 24, 256),
        "hf_albert": (masked("Albert", hidden_size=1536, num_attention_heads=24, intermediate_size=6144, **two), 30000, 12, 256),
        "hf_deberta": (masked("DebertaV2", hidden_size=768, num_attention_heads=12, intermediate_size=3072, vocab_size=60000, relative_attention=True,
                              pos_att_type=["p2c", "c2p"], **two), 60000, 8, 320),
    }


def part_language(files):
    import transformers as t
    for name, (build, vocab, batch, seq) in language_models().items():
        if left() < 6:
            return
        try:
            free()
            torch.set_default_dtype(TYPE)
            with torch.device(DEVICE):
                model = build()
            torch.set_default_dtype(torch.float32)
            model.train()
            x = torch.randint(3, min(vocab, 30000), (batch, seq), device=DEVICE)
            train_and_forward(files, name, f"batch={batch} seq={seq} V={vocab}", model,
                              lambda: F.cross_entropy(model(input_ids=x).logits.view(-1, model.config.vocab_size), x.view(-1)), lambda: model(input_ids=x))
        except Exception:
            print(name, traceback.format_exc()[-600:], flush=True)
        torch.set_default_dtype(torch.float32)
        model = x = None
        print(name, "left", round(left()), flush=True)
    others = {
        "hf_t5": (lambda: t.T5ForConditionalGeneration(t.T5Config(d_model=768, d_kv=64, d_ff=2048, num_layers=2, num_heads=12, use_cache=False)), 8),
        "hf_bart": (lambda: t.BartForConditionalGeneration(t.BartConfig(d_model=1024, encoder_layers=2, decoder_layers=2, use_cache=False)), 8),
    }
    for name, (build, batch) in others.items():
        if left() < 6:
            return
        try:
            free()
            torch.set_default_dtype(TYPE)
            with torch.device(DEVICE):
                model = build()
            torch.set_default_dtype(torch.float32)
            model.train()
            x, y = torch.randint(3, 30000, (batch, 512), device=DEVICE), torch.randint(3, 30000, (batch, 192), device=DEVICE)
            train_and_forward(files, name, f"batch={batch} seq=512+192", model, lambda: F.cross_entropy(
                model(input_ids=x, decoder_input_ids=y).logits.view(-1, model.config.vocab_size), y.view(-1)), lambda: model(input_ids=x, decoder_input_ids=y))
        except Exception:
            print(name, traceback.format_exc()[-600:], flush=True)
        torch.set_default_dtype(torch.float32)
        model = None
        print(name, "left", round(left()), flush=True)


# ---- vision ----


def part_vision(files):
    import torchvision
    for name, batch, amp in (("resnext50_32x4d", 32, 1), ("efficientnet_b0", 64, 1), ("mobilenet_v3_large", 96, 1), ("densenet121", 32, 1), ("swin_t", 32, 0), ("vgg16", 32, 1),
                             ("regnet_y_8gf", 32, 1), ("convnext_large", 16, 1), ("vit_l_16", 64, 0), ("swin_v2_s", 16, 0), ("resnet152", 32, 1), ("resnet18", 512, 1),
                             ("resnet50", 20, 1), ("wide_resnet101_2", 24, 1), ("convnext_tiny", 160, 1), ("vit_h_14", 8, 0), ("vit_b_16", 20, 0), ("regnet_x_3_2gf", 64, 1)):
        if left() < 6:
            return
        try:
            free()
            model = getattr(torchvision.models, name)().to(DEVICE)
            model = model.to(memory_format=torch.channels_last) if amp else model.to(TYPE)
            x = torch.randn(batch, 3, 224, 224, device=DEVICE)
            x = x.to(memory_format=torch.channels_last) if amp else x.to(TYPE)
            y = torch.randint(0, 1000, (batch,), device=DEVICE)

            def loss():
                with torch.autocast("cuda", TYPE, enabled=bool(amp), cache_enabled=False):
                    return F.cross_entropy(model(x), y)

            def forward():
                with torch.autocast("cuda", TYPE, enabled=bool(amp), cache_enabled=False):
                    model(x)

            train_and_forward(files, f"{name}_b{batch}" + ("_amp" if amp else ""), f"batch={batch}", model, loss, forward)
        except Exception:
            print(name, traceback.format_exc()[-600:], flush=True)
        model = x = None
        print(name, "left", round(left()), flush=True)


# ---- the host ----

SMALL = {"gpt": dict(kind="gpt", V=1024, d=256, heads=4, kv=4, hd=64, ff=1024),
         "llama": dict(kind="llama", V=1024, d=256, heads=4, kv=4, hd=64, ff=768),
         "llama_rope": dict(kind="llama", V=1024, d=256, heads=4, kv=2, hd=64, ff=768, rope=1),
         "moe": dict(kind="moe", V=1024, d=256, heads=4, kv=4, hd=64, ff=512, experts=8, topk=2, rope=1)}


def part_host(files):
    """Small tensors, so that the device waits; rounds lie apart, since a host's speed changes by the minute."""
    calls = {}
    for (name, shape), layers in itertools.product(SMALL.items(), (2, 4, 8, 16)):
        c = shape | dict(L=layers, batch=2, seq=128)
        model, optimizer = make(c)
        data = batch_of(c)
        caches = [tuple(torch.zeros(2, c["kv"], 256, 64, device=DEVICE, dtype=TYPE) for _ in range(2)) for _ in range(layers)]
        one = data[:, :1].contiguous()
        calls[name, "forward eager", layers] = (lambda m, d: lambda: m(d[:, :-1]))(model, data), False
        calls[name, "decode eager", layers] = (lambda m, x, k: lambda: m(x, k, 200))(model, one, caches), False
        calls[name, "train eager", layers] = (lambda m, o, d: lambda: step(m, o, d))(model, optimizer, data), True
        calls[name, "prefill eager", layers] = (lambda m, d, k: lambda: m(d[:, :128], k, 0))(model, data, caches), False
    found = {key: [] for key in calls}
    for i in range(8):
        if i > 2 and left() < 12:
            break
        order = list(calls)
        random.Random(i).shuffle(order)
        for key in order:
            call, grads = calls[key]
            with torch.set_grad_enabled(grads):
                call()
                torch.cuda.synchronize()
                began = time.perf_counter()
                for _ in range(10):
                    call()
                torch.cuda.synchronize()
                if i:
                    found[key].append((time.perf_counter() - began) * 100)
    for key, ms in found.items():
        files.host.row(*key, round(statistics.median(ms), 4), round(min(ms), 4), round(max(ms), 4))


def main():
    global LIMIT
    words = sys.argv[2:]
    if "--seconds" in words:
        at = words.index("--seconds")
        LIMIT = float(words[at + 1])
        del words[at:at + 2]
    passes_h200.LIMIT = 1e9
    words = words or ["host", "host_ops", "language", "vision"]
    files = Files(sys.argv[1], words)
    for name in words:
        began = time.perf_counter()
        try:
            globals()[f"part_{name}"](files)
        except Exception:
            traceback.print_exc()
        print(name, "took", round(time.perf_counter() - began, 1), "left", round(left()), flush=True)


if __name__ == "__main__":
    main()
