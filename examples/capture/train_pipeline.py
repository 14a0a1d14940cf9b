# SPDX-License-Identifier: Apache-2.0
"""train_pipeline.py - four pipeline stages, four micro-batches, one forward one backward (1F1B); data parallel over
the rest.  Stages differ, so the capture runs one rank of each.

    orrery capture --world-size 8 -o pp.json.gz train_pipeline.py"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

STAGES, MICRO_BATCHES, BATCH, WIDTH = 4, 4, 64, 512


def main():
    dist.init_process_group("nccl")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    mesh = init_device_mesh(device.type, (STAGES, dist.get_world_size() // STAGES), mesh_dim_names=("pp", "dp"))
    stage_number = mesh["pp"].get_local_rank()
    layers = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(2 + stage_number % 2)]).to(device)
    example = torch.randn(BATCH // MICRO_BATCHES, WIDTH, device=device)
    stage = PipelineStage(
        layers, stage_number, STAGES, device, input_args=(example,), output_args=(example,), group=mesh["pp"].get_group()
    )
    schedule = Schedule1F1B(stage, n_microbatches=MICRO_BATCHES, loss_fn=lambda y, t: ((y - t) ** 2).mean())
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    for _ in range(2):
        x = torch.randn(BATCH, WIDTH, device=device)
        if stage_number == 0:
            schedule.step(x)
        elif stage_number == STAGES - 1:
            schedule.step(target=x)
        else:
            schedule.step()
        for p in layers.parameters():
            dist.all_reduce(p.grad, group=mesh["dp"].get_group())
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
