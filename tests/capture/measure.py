# SPDX-License-Identifier: Apache-2.0
"""measure.py - the operators of a real step on a real GPU, as a table to hold captured graphs against.

    python measure.py SIZE BATCH LENGTH > SIZE.csv

One row for each operator with each list of input shapes: how often it ran in one training step, how often it was the
innermost operator (the one that launches kernels), and the GPU time of its own kernels in microseconds."""

import collections
import sys

import torch
from torch.profiler import ProfilerActivity, profile

from decoder import SIZES, Decoder, train_step


def main(size, batch, length):
    torch.manual_seed(0)
    model = Decoder(size).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, SIZES[size][0], (batch, length), device="cuda")
    for _ in range(3):
        train_step(model, optimizer, tokens, tokens)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as p:
        train_step(model, optimizer, tokens, tokens)
        torch.cuda.synchronize()
    rows = collections.OrderedDict()
    for e in p.events():
        if not e.name.startswith("aten::"):
            continue
        shapes = "|".join("x".join(str(n) for n in s) for s in e.input_shapes if isinstance(s, (list, tuple)) and s)
        row = rows.setdefault((e.name, shapes), [0, 0, 0.0])
        row[0] += 1
        row[1] += not any(c.name.startswith("aten::") for c in e.cpu_children)
        row[2] += e.self_device_time_total
    print("op,shapes,count,innermost,gpu_us")
    for (name, shapes), (count, inner, time) in rows.items():
        print("%s,%s,%d,%d,%.3f" % (name, shapes[:400], count, inner, time))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
