#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step as it was recorded by a profiler that slows the host: host.json and device.json of one rank.

    torch_watched.py [--cpu] NS FOLDER     NS: nanoseconds that recording takes for each byte of an operator's tensors

Unwatched, a view takes 0.7 us of the host, another operator 3.5 us, a launch 6 us, and a kernel 5 us of the device.
With NS = 0 the traces are those of the unwatched step.  --cpu: no device, no launches.
"""

import json
import pathlib
import sys

VIEW, OPERATOR, LAUNCH, KERNEL = 700, 3500, 6000, 5000
VIEWS = ("aten::t", "aten::transpose", "aten::as_strided", "aten::view", "aten::reshape")


class Step:
    def __init__(self, rate, has_device):
        self.rate, self.has_device = rate, has_device
        self.now, self.free, self.number = 1000000, 0, 3
        self.nodes, self.events, self.stack = [], [], [2]

    def event(self, cat, name, tid, start, end, args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": start / 1000,
                            "dur": (end - start) / 1000, "args": args})

    def operator(self, name, tensors, inside=(), kernel=False):
        self.number += 1
        number = self.number
        io = {"values": [[number, number, 0, 1024 * (i + 1), 4, "cuda:0"] for i in range(tensors)],
              "shapes": [[1024 * (i + 1)] for i in range(tensors)], "types": ["Tensor(float)"] * tensors}
        size = 2 * sum(len(json.dumps(v)) for v in io.values())
        self.now += self.rate * size // 4  # around it: entering
        start = self.now
        self.now += self.rate * size // 2  # inside
        self.stack.append(number)
        for each in inside:
            self.operator(*each)
        self.now += VIEW if name in VIEWS else OPERATOR
        if kernel and self.has_device:
            self.event("cuda_runtime", "cudaLaunchKernel", 7, self.now, self.now + LAUNCH,
                       {"External id": number, "correlation": number})
            self.now += LAUNCH
            begin = max(self.now, self.free)
            self.free = begin + KERNEL
            self.event("kernel", "kernel_of_" + name[6:], 9, begin, self.free,
                       {"External id": number, "correlation": number, "stream": 9, "device": 0})
        self.stack.pop()
        self.event("cpu_op", name, 7, start, self.now, {"External id": number, "Record function id": number})
        self.now += self.rate * size // 4  # around it: leaving
        self.nodes.append({"id": number, "name": name, "ctrl_deps": self.stack[-1], "inputs": io, "outputs": io,
                           "attrs": self.attrs(number)})

    @staticmethod
    def attrs(rf):
        return [{"name": n, "type": "int64", "value": v} for n, v in
                (("rf_id", rf), ("fw_parent", 0), ("seq_id", -1), ("scope", 0 if rf > 3 else 7), ("tid", 1), ("fw_tid", 0))]

    def block(self):
        self.operator("aten::view", 1)
        self.operator("aten::linear", 3, [("aten::t", 1, [("aten::transpose", 1, [("aten::as_strided", 2)])]),
                                          ("aten::addmm", 3, (), True)])
        self.operator("aten::gelu", 1, (), True)
        self.operator("aten::add", 2, (), True)

    def write(self, folder):
        empty = {"values": [], "shapes": [], "types": []}
        roots = [{"id": i, "name": f"[pytorch|profiler|execution_trace|{what}]", "ctrl_deps": 1, "inputs": empty,
                  "outputs": empty, "attrs": self.attrs(i)} for i, what in ((1, "process"), (2, "thread"))]
        host = {"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "2026-01-01 00:00:00", "start_ts": 1000, "finish_ts": 2000,
                "nodes": roots + sorted(self.nodes, key=lambda n: n["id"])}
        self.event("user_annotation", "ProfilerStep#1", 7, 1000000, self.now, {"External id": 0, "Record function id": 0})
        device = {"schemaVersion": 1, "traceEvents": self.events}
        (folder / "host.json").write_text(json.dumps(host))
        (folder / "device.json").write_text(json.dumps(device))


def main():
    arguments = [a for a in sys.argv[1:] if a != "--cpu"]
    step = Step(int(arguments[0]), "--cpu" not in sys.argv)
    for _ in range(40):
        step.block()
    step.write(pathlib.Path(arguments[1]))


main()
