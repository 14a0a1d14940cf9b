# SPDX-License-Identifier: Apache-2.0
"""train_ddp.py - an ordinary data-parallel training script, independent of capture.

    orrery capture --world-size 8 -o ddp.json.gz train_ddp.py"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from decoder import SIZES, Decoder, train_step


def main():
    dist.init_process_group("nccl")
    device = "cuda:%s" % os.environ["LOCAL_RANK"]
    torch.cuda.set_device(device)
    model = DistributedDataParallel(Decoder("tiny").to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for step in range(100):
        tokens = torch.randint(0, SIZES["tiny"][0], (2, 128), device=device)
        loss = train_step(model, optimizer, tokens, tokens)
        if dist.get_rank() == 0:
            print("step", step, "loss", loss.item())


if __name__ == "__main__":
    main()
