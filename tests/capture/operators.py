# SPDX-License-Identifier: Apache-2.0
"""operators.py - the operators that ordinary training steps dispatch, as a list that the table of costs is held against.

    python operators.py > operators.txt

Convolutional, recurrent, attention and mixture-of-experts models, five optimizers, with and without autocast, on the GPU if there is
one and on the CPU; then the same models exported, as they are and decomposed."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

OPTIMIZERS = (
    torch.optim.AdamW,
    lambda p: torch.optim.SGD(p, 0.1, 0.9),
    torch.optim.Adagrad,
    lambda p: torch.optim.Adam(p, amsgrad=True),
    torch.optim.RMSprop,
)


class Recorder(TorchDispatchMode):
    def __init__(self, names):
        super().__init__()
        self.names = names

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(str(func))
        return func(*args, **(kwargs or {}))


class Convolutions(nn.Module):
    """What image and diffusion models are made of."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 8, 3, 2, 1), nn.ConvTranspose2d(8, 8, 2, 2)
        self.batch, self.group, self.head = nn.BatchNorm2d(8), nn.GroupNorm(2, 8), nn.Linear(8, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.batch(self.down(x))), 2)
        x = F.interpolate(F.silu(self.group(self.up(x))), scale_factor=2)
        x = F.avg_pool2d(F.pad(F.interpolate(x, scale_factor=2.0, mode="bilinear"), (1, 1, 1, 1)), 2)
        return self.head(F.dropout(F.adaptive_avg_pool2d(x, 1).flatten(1), 0.1))


class Tokens(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.tokens, self.layer, self.head = nn.Embedding(50, 16), layer, nn.Linear(16, 10)

    def forward(self, x):
        y = self.layer(self.tokens(x))
        return self.head((y[0] if isinstance(y, tuple) else y).mean(1))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.weight = nn.Linear(16, 4), nn.Parameter(torch.randn(4, 16, 16) * 0.1)

    def forward(self, x):
        y = x.flatten(0, 1)
        share, chosen = torch.topk(self.gate(y).softmax(-1), 2)
        out = torch.zeros_like(y)
        for expert in range(4):
            row, place = torch.where(chosen == expert)
            part = torch.einsum("td,de->te", y[row], self.weight[expert]) * share[row, place, None]
            out.index_add_(0, row, part.to(out.dtype))
        out = out + torch.gather(y, 0, torch.argsort(y, 0)).cumsum(0) * torch.tril(torch.ones(16, 16, device=y.device)).sum()
        return out.view(x.shape)


def step(model, x, optimizer):
    target = torch.zeros(4, dtype=torch.long, device=x.device)
    ones = torch.ones(4, 10, device=x.device)
    loss = F.cross_entropy(model(x), target, label_smoothing=0.1)
    loss = loss + F.mse_loss(model(x).float(), ones) + F.binary_cross_entropy_with_logits(model(x).float(), ones)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def main():
    names = set()
    models = [Convolutions()] + [Tokens(layer) for layer in (
        nn.LSTM(16, 16, batch_first=True), nn.GRU(16, 16), nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), Experts())]
    for model in models:
        x = torch.randn(4, 3, 16, 16) if isinstance(model, Convolutions) else torch.randint(0, 50, (4, 6))
        for device in ["cuda"] * torch.cuda.is_available() + ["cpu"]:
            for make in OPTIMIZERS:
                optimizer = make(model.to(device).parameters())
                for autocast in (False, True):
                    with Recorder(names), torch.autocast(device, torch.bfloat16, enabled=autocast):
                        step(model, x.to(device), optimizer)
        try:
            program = torch.export.export(model.cpu(), (x,))
        except Exception:  # choosing experts depends on data: such a model cannot be exported
            continue
        for form in (program, program.run_decompositions()):
            names |= {str(n.target) for n in form.graph.nodes if n.op == "call_function"}
    print("\n".join(sorted(n for n in names if " " not in n)))


if __name__ == "__main__":
    main()
