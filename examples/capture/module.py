# SPDX-License-Identifier: Apache-2.0
"""module.py - capture from inside a program: a GPT-2-like model on one rank.

    python module.py step.json.gz [SIZE BATCH LENGTH]"""

import sys

import torch

import orrery_capture
from decoder import SIZES, Decoder, train_step


def main(path, size="tiny", batch=2, length=128):
    with orrery_capture.record(path, world_size=1, steps=2):
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model = Decoder(size).to(device, torch.bfloat16)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        for _ in range(2):
            tokens = torch.randint(0, SIZES[size][0], (batch, length), device=device)
            train_step(model, optimizer, tokens, tokens)


if __name__ == "__main__":
    main(sys.argv[1], *sys.argv[2:3], *(int(n) for n in sys.argv[3:5]))
