# SPDX-License-Identifier: Apache-2.0
"""train_fsdp.py - fully sharded data parallel (FSDP2): each layer's parameters are gathered before use, gradients
are reduce-scattered.

    orrery capture --world-size 8 -o fsdp.json.gz train_fsdp.py"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from decoder import SIZES, Decoder, train_step


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dist.init_process_group("nccl")
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    model = Decoder("tiny").to(device)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(2):
        tokens = torch.randint(0, SIZES["tiny"][0], (2, 128), device=device)
        train_step(model, optimizer, tokens, tokens)


if __name__ == "__main__":
    main()
