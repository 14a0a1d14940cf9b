# SPDX-License-Identifier: Apache-2.0
"""train_tp_dp.py - two linear layers, tensor parallel over 4 ranks, data parallel over the rest: in theory one
all-reduce of the activations in the forward pass and one of their gradients in the backward pass (over 4 ranks), and
one all-reduce of the gradients (over the data-parallel ranks).

    orrery capture --world-size 8 -o tp.json.gz train_tp_dp.py"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

WIDTH, INNER, TENSOR_PARALLEL, BATCH = 512, 2048, 4, 64


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH, bias=False)  # makes the block's input require a gradient
        self.up = nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        return self.down(torch.relu(self.up(self.inner(x))))


def main():
    dist.init_process_group("nccl")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data_parallel = dist.get_world_size() // TENSOR_PARALLEL
    mesh = init_device_mesh(device, (data_parallel, TENSOR_PARALLEL), mesh_dim_names=("dp", "tp"))
    model = Mlp().to(device)
    parallelize_module(model, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    group = mesh["dp"].get_group()
    for _ in range(2):
        loss = model(torch.randn(BATCH, WIDTH, device=device)).sum()
        loss.backward()
        gradients = [p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad for p in model.parameters()]
        flat = torch.cat([g.reshape(-1) for g in gradients])
        dist.all_reduce(flat, group=group)
        for g, part in zip(gradients, flat.split([g.numel() for g in gradients])):
            g.copy_(part.view_as(g) / data_parallel)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
