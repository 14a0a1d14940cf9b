# SPDX-License-Identifier: Apache-2.0
"""decoder.py - a decoder-only transformer in plain PyTorch: GPT-2-like, or Llama-like when gated."""

import torch
import torch.nn.functional as F
from torch import nn

SIZES = {  # vocabulary, width, layers, heads, KV heads, FFN width, gated
    "tiny": (1024, 256, 2, 4, 4, 1024, False),
    "gpt2_124m": (50304, 768, 12, 12, 12, 3072, False),
    "gpt2_medium": (50304, 1024, 24, 16, 16, 4096, False),
    "llama_1b": (128256, 2048, 16, 32, 8, 8192, True),
    "llama_tiny": (1024, 256, 2, 8, 4, 512, True),
}


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-5)


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads, has_bias):
        super().__init__()
        self.head = width // heads
        self.parts = [heads * self.head, kv_heads * self.head, kv_heads * self.head]
        self.qkv = nn.Linear(width, sum(self.parts), bias=has_bias)
        self.out = nn.Linear(heads * self.head, width, bias=has_bias)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).split(self.parts, dim=-1)
        q, k, v = (p.view(batch, length, -1, self.head).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Mlp(nn.Module):
    def __init__(self, width, inner, gated):
        super().__init__()
        self.up = nn.Linear(width, inner, bias=not gated)
        self.gate = nn.Linear(width, inner, bias=False) if gated else None
        self.down = nn.Linear(inner, width, bias=not gated)

    def forward(self, x):
        if self.gate is None:
            return self.down(F.gelu(self.up(x)))
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, width, heads, kv_heads, inner, gated):
        super().__init__()
        self.norm1 = RmsNorm(width) if gated else nn.LayerNorm(width)
        self.attention = Attention(width, heads, kv_heads, not gated)
        self.norm2 = RmsNorm(width) if gated else nn.LayerNorm(width)
        self.mlp = Mlp(width, inner, gated)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        vocabulary, width, layers, heads, kv_heads, inner, gated = SIZES[size]
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Block(width, heads, kv_heads, inner, gated) for _ in range(layers))
        self.norm = RmsNorm(width) if gated else nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def train_step(model, optimizer, tokens, targets):
    logits = model(tokens)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss
