# SPDX-License-Identifier: Apache-2.0
"""measure.py - the operators of a real step on a real GPU, as a table to hold captured graphs against.

    python measure.py SIZE BATCH LENGTH > SIZE.csv

One row for each operator with each list of input shapes below each operator that called it: how often it ran in one
training step, how often it was the innermost operator, and the GPU time of the kernels it launched itself, in
microseconds.  Shapes of long lists of tensors are left out.  docs/format/operators.md has the columns."""

import collections
import sys

import torch
from torch.profiler import ProfilerActivity, profile

from decoder import SIZES, Decoder, train_step

LONGEST_LIST = 8


def caller(event):
    event = event.cpu_parent
    while event is not None and not event.name.startswith("aten::"):
        event = event.cpu_parent
    return "" if event is None else event.name


def shapes_of(event):
    """All that are known, a list's one by one; scalars have none."""
    shapes = []
    for s in getattr(event, "structured_input_shapes", None) or event.input_shapes:
        if isinstance(s, (list, tuple)) and s and isinstance(s[0], (list, tuple)):
            shapes += s if len(s) <= LONGEST_LIST else []
        elif isinstance(s, (list, tuple)) and s:
            shapes.append(s)
    return "|".join("x".join(str(n) for n in s) for s in shapes if s)


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
        row = rows.setdefault((e.name, shapes_of(e), caller(e)), [0, 0, 0.0])
        row[0] += 1
        row[1] += not any(c.name.startswith("aten::") for c in e.cpu_children)
        row[2] += e.self_device_time_total
    print("op,shapes,count,innermost,gpu_us,parent")
    for (name, shapes, parent), (count, inner, time) in rows.items():
        print("%s,%s,%d,%d,%.3f,%s" % (name, shapes, count, inner, time, parent))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
