#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small pairs of PyTorch traces, host and device, for tests: always the same bytes for the same arguments.

    torch_inputs.py CASE FOLDER      writes host.json and device.json (several ranks: host0.json, device0.json, ...)

The program that was "recorded" is a training step: operators on the main thread launch kernels, a second thread runs the
backward pass with collectives on a stream of their own, then the host waits for the device.

before_2024 is what PyTorch 2.0 wrote: host nodes in the flat form, no record-function ids in the device trace, times in
whole microseconds, start and duration each cut on its own, so that operators begin together and end after their callers.
pointers is a job of four such ranks, with groups {0, 1} and {2, 3} besides that of all: a group's name is its address in
the process, another one on each rank, and nothing says who is in it.
"""

import json
import pathlib
import random
import sys

SCHEMA = "1.1.1-chakra.0.0.4"
CASES = {
    "plain": {},
    "fractions": {"scale": 0.001, "seed": 2},
    "two_steps": {"steps": 2, "seed": 3},
    "gaps": {"gap": 2500, "seed": 4},
    "old": {"schema": "1.0.2-chakra.0.0.4", "seed": 5},
    "escapes": {"names": ["aten::\u00e4\"\\\n\u20ac\U0001F600", "a/b"], "seed": 6},
    "same_start": {"flat": True, "seed": 7},
    "orphans": {"orphans": True, "seed": 8},
    "four": {"ranks": 4, "seed": 9},
    "before_2024": {"before_2024": True, "steps": 3, "seed": 10},
    "pointers": {"before_2024": True, "pairs": True, "ranks": 4, "seed": 11},
}


def flat_form(node, rank):
    """A node as the first schema has it: what later ones keep in `attrs`, `inputs` and `outputs` beside its name."""
    attrs = {attr["name"]: attr["value"] for attr in node["attrs"]}
    keys = ("rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid", "op_schema")
    flat = {"name": node["name"], "id": node["id"], "parent": node["ctrl_deps"], **{key: attrs[key] for key in keys}}
    for side in ("input", "output"):
        io = node[f"{side}s"]
        flat |= {f"{side}s": io["values"], f"{side}_shapes": io["shapes"], f"{side}_types": io["types"]}
    if "collective_name" in attrs:
        group = 94428220485728 + 1048576 * rank + 4096 * int(attrs["pg_name"])
        own = rank % attrs["pg_size"]
        flat["inputs"] = [io["values"], 7, group, own, attrs["collective_name"], [], []]
        flat["input_shapes"] = [io["shapes"], [], [], [], [], [], []]
        flat["input_types"] = ["GenericList[Tensor(float)]", "Int", "Int", "Int", "String", "GenericList[]", "GenericList[]"]
    return flat


class Rank:
    """The traces of one rank while they are made; time in whole units, `scale` microseconds each."""

    def __init__(self, rank, ranks=1, seed=1, scale=1, schema=SCHEMA, before_2024=False, **_):
        self.before_2024 = before_2024
        self.rng, self.scale, self.schema = random.Random(seed * 1000 + rank), scale, schema
        self.rank, self.ranks = rank, ranks
        self.nodes, self.events = [], []
        self.ident = self.rf = self.correlation = 1
        self.external = 100
        self.now = {1: 1000000, 2: 1000000}
        self.busy = {7: 0, 20: 0}
        self.stack = {1: [2], 2: [3]}
        self.ident = 3

    def time(self, t):
        return t if self.scale == 1 else round(t * self.scale + 1700000000000000, 3)

    def length(self, t):
        return t if self.scale == 1 else round(t * self.scale, 3)

    def attrs(self, rf, thread, more=()):
        values = [("rf_id", "uint64", rf), ("fw_parent", "uint64", 0), ("seq_id", "int64", -1), ("scope", "uint64", 0),
                  ("tid", "uint64", thread), ("fw_tid", "uint64", 0), ("op_schema", "string", ""), *more]
        return [{"name": name, "type": kind, "value": value} for name, kind, value in values]

    def node(self, ident, name, parent, rf, thread, tensors=(), more=()):
        io = {"values": [[i, i, 0, size, 4, "cuda:0"] for i, size in enumerate(tensors, 1)],
              "shapes": [[size] for size in tensors], "types": ["Tensor(float)"] * len(tensors)}
        self.nodes.append({"id": ident, "name": name, "ctrl_deps": parent, "inputs": io, "outputs": io,
                           "attrs": self.attrs(rf, thread, more)})

    def event(self, cat, name, thread, start, length, args):
        if self.before_2024:
            start, length = start // 6, length // 6
            args = {key: value for key, value in args.items() if key != "Record function id"}
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": 0 if isinstance(thread, str) else 77 + self.rank,
                            "tid": int(thread) if isinstance(thread, str) else 70 + thread, "ts": self.time(start),
                            "dur": self.length(length), "args": args})

    def operator(self, thread, name, inside=(), cat="cpu_op", tensors=(), more=(), flat=False, args=None, traced=True):
        """Open it, run what is inside, close it; the node is written when it ends, as PyTorch does."""
        self.ident += self.rng.choice((1, 1, 2))
        self.rf += 1
        self.external += 1
        ident, rf, external = self.ident, self.rf, self.external
        start = self.now[thread]
        self.now[thread] += 0 if flat else self.rng.randint(1, 3)
        place = len(self.events)
        if traced:
            self.stack[thread].append(ident)
        for step in inside:
            step(external)
        self.now[thread] += self.rng.randint(1, 4)
        self.event(cat, name, thread, start, self.now[thread] - start,
                   {"External id": external, "Record function id": rf, **(args or {})})
        self.events.insert(place, self.events.pop())
        if traced:
            self.stack[thread].pop()
            self.node(ident, name, self.stack[thread][-1], rf, thread, tensors, more)

    def kernel(self, thread, name, stream=7, cat="kernel", call="cudaLaunchKernel", lost=False, length=None, args=None):
        def launch(external):
            self.correlation += 1
            start, took = self.now[thread], self.rng.randint(1, 3)
            self.event("cuda_runtime", call, thread, start, took,
                       {"External id": external, "correlation": self.correlation + 5000 * lost})
            self.now[thread] += took
            begin = max(self.now[thread] + self.rng.randint(1, 5), self.busy[stream] + 1)
            last = length or self.rng.randint(5, 20)
            self.event(cat, name, str(stream), begin, last,
                       {"External id": external, "device": 0, "stream": stream, "correlation": self.correlation, **(args or {})})
            self.busy[stream] = begin + last
        return launch

    def synchronise(self):
        self.correlation += 1
        self.external += 1
        start = self.now[1]
        end = max(self.now[1] + 2, *self.busy.values()) + 1
        common = {"External id": self.external, "correlation": self.correlation}
        self.event("cuda_runtime", "cudaDeviceSynchronize", 1, start, end - start, common)
        self.event("cuda_sync", "Context Sync", "0", start, end - start, {**common, "stream": -1, "device": 0})
        self.now[1] = end

    def collective(self, size, group=0, members=None):
        members = members or self.ranks
        about = {"Process Group Name": str(group), "Collective name": "allreduce", "dtype": "Float", "In msg nelems": size,
                 "Out msg nelems": size, "Group size": members}
        more = [("collective_name", "string", "allreduce"), ("dtype", "string", "Float"), ("in_msg_nelems", "uint64", size),
                ("out_msg_nelems", "uint64", size), ("pg_name", "string", str(group)), ("pg_size", "uint64", members)]
        if self.before_2024:
            about = {}
        kernel = self.kernel(2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 20, call="cudaLaunchKernelExC", length=30, args=about)
        if self.before_2024:
            inside = [lambda _: self.operator(2, "nccl:all_reduce", [kernel], "user_annotation", tensors=[size])]
        else:
            inside = [kernel]
        self.operator(2, "c10d::allreduce_", [lambda _: self.operator(
            2, "record_param_comms", inside, tensors=[size], more=more, args=about)], tensors=[size])

    def step(self, number, gap=0, flat=False, orphans=False, names=("aten::relu",), pairs=False, **_):
        begin = self.now[1]
        for layer in range(2):
            self.operator(1, "aten::linear", [lambda _: self.operator(1, "aten::t", flat=flat),
                                              lambda _: self.operator(1, "aten::addmm", [self.kernel(1, "gemm<float>(int)")],
                                                                      tensors=[256, 64])], flat=flat)
            for name in names:
                self.operator(1, name, [self.kernel(1, "elementwise")])
        if orphans:
            self.operator(1, "aten::lost", [self.kernel(1, "lost_kernel", lost=True)])
            self.operator(1, "aten::zero_", [self.kernel(1, "Memset (Device)", cat="gpu_memset", call="cudaMemsetAsync")])
            self.operator(1, "aten::unseen", [self.kernel(1, "kernel_of_unseen")], traced=False)
        self.now[2] = max(self.now[2], self.now[1] + 5 + gap)
        for layer in range(2):
            self.operator(2, "AddmmBackward0", [self.kernel(2, "gemm_nt"), self.kernel(2, "gemm_tn")], tensors=[256])
            self.collective(1024 * (layer + 1))
            if pairs:
                self.collective(64, 1, 2)
        self.now[1] = max(self.now[1], self.now[2] + 3 + gap)
        self.operator(1, "Optimizer.step#SGD.step", [self.kernel(1, "multi_tensor_apply")], cat="user_annotation")
        self.synchronise()
        self.operator(1, "aten::item", [self.kernel(1, "Memcpy DtoH (Device -> Pageable)", cat="gpu_memcpy", call="cudaMemcpyAsync")])
        self.event("user_annotation", f"ProfilerStep#{number}", 1, begin, self.now[1] + 1 - begin,
                   {"External id": 1, "Record function id": 0})
        self.now[1] += 10

    def finish(self):
        for ident, thread in ((2, 1), (3, 2)):
            self.node(ident, "[pytorch|profiler|execution_trace|thread]", 1, 0, thread)
        self.node(1, "[pytorch|profiler|execution_trace|process]", 1, 0, 0)
        host = {"schema": self.schema, "pid": 77 + self.rank, "time": "2026-01-01 00:00:00", "start_ts": 1, "nodes": self.nodes,
                "finish_ts": 2}
        if self.before_2024:
            host = {**host, "schema": "1.0.1", "nodes": [flat_form(node, self.rank) for node in self.nodes]}
        everyone = list(range(self.ranks))
        device = {"schemaVersion": 1, "distributedInfo": {
            "backend": "nccl", "rank": self.rank, "world_size": self.ranks,
            "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": self.ranks, "ranks": everyone}]},
            "traceEvents": self.events}
        if self.before_2024:
            del device["distributedInfo"]["pg_config"]
        return host, device


def make(case):
    """[(host, device)] of every rank."""
    options = CASES[case]
    pairs = []
    for rank in range(options.get("ranks", 1)):
        made = Rank(rank, **options)
        for number in range(options.get("steps", 1)):
            made.step(number, **options)
        pairs.append(made.finish())
    return pairs


def write(case, folder):
    pairs = make(case)
    for rank, pair in enumerate(pairs):
        for kind, trace in zip(("host", "device"), pair):
            name = f"{kind}{rank}.json" if len(pairs) > 1 else f"{kind}.json"
            (pathlib.Path(folder) / name).write_text(json.dumps(trace))


if __name__ == "__main__":
    write(*sys.argv[1:3])
