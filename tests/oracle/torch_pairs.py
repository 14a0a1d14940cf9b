#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Synthetic PyTorch host execution trace + Kineto device trace of one rank (formats: docs/spec/chakra.md, sections 3.2 and 3.3).

  torch_pairs.py --host HOST.json --device DEVICE.json [--seed N] [--iterations N] [--layers N] [--target-mb N] ...
  torch_pairs.py --random SEED --out DIR        random knobs: host.json, device.json (chakra_link.py --random adds results)

The program imitated is data-parallel training: per iteration a forward pass, a backward pass on a second thread with
collectives, an optimizer step and a synchronisation. --target-mb repeats iterations until the device trace has about that
size (both files are streamed, memory stays small). A name ending in .gz is compressed. Same options, same bytes.

--extras, a comma-separated list: ddp (forward inside one annotation), pginit (process-group description), memcpy, memset,
driver (cuLaunchKernel), multikernel (two kernels under one operator), orphan (kernel without launch), untraced (operator
missing in the host trace), thread3 (a third, late thread), streamsync, coalesced (nccl:coalesced around collectives),
stepnode (ProfilerStep also in the host trace), lists (tensor lists as inputs).
"""
import argparse
import gzip
import json
import os
import random
import sys

EXTRAS = ["ddp", "pginit", "memcpy", "memset", "driver", "multikernel", "orphan", "untraced", "thread3", "streamsync",
          "coalesced", "stepnode", "lists"]
SCHEMAS = ["1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4", "1.1.0-chakra.0.0.4", "1.1.1-chakra.0.0.4"]
COLLECTIVES = {                                    # name: (host operator, annotation, kernel)
    "allreduce": ("c10d::allreduce_", "nccl:all_reduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)"),
    "allgather": ("c10d::_allgather_base_", "nccl:_all_gather_base", "ncclDevKernel_AllGather_RING_LL(args)"),
    "reducescatter": ("c10d::_reduce_scatter_base_", "nccl:_reduce_scatter_base", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(args)"),
    "broadcast": ("c10d::broadcast_", "nccl:broadcast", "ncclDevKernel_Broadcast_RING_LL(args)"),
    "alltoall": ("c10d::alltoall_base_", "nccl:all_to_all", "ncclDevKernel_SendRecv(args)"),
    "send": ("c10d::send", "nccl:send 0->1", "ncclDevKernel_SendRecv(args)"),
    "recv": ("c10d::recv_", "nccl:recv 0<-1", "ncclDevKernel_SendRecv(args)"),
}
ELEMENT_BYTES = {"float": 4, "c10::BFloat16": 2, "long int": 8}
PROCESS = 4242


class ListWriter:
    """Streams a JSON object whose one list is written element by element."""

    def __init__(self, path, before, key, compact):
        self.file = gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w")
        self.compact, self.empty, self.bytes = compact, True, 0
        self.file.write(json.dumps(before)[:-1] + ', "%s": [' % key)

    def add(self, item):
        text = json.dumps(item, separators=(",", ":")) if self.compact else json.dumps(item)
        self.file.write(("" if self.empty else ",") + "\n" + text)
        self.empty = False
        self.bytes += len(text) + 2

    def close(self, after):
        self.file.write("\n], " + json.dumps(after)[1:] + "\n")
        self.file.close()


class Thread:
    """Clock and open operators of one host thread. Threads are numbered 1, 2, 3 in the host trace."""

    def __init__(self, number, node, now):
        self.number, self.node, self.now, self.open = number, node, now, [node]
        self.tid = PROCESS if number == 1 else 4298 + number


class Recorder:
    """Plays a program and writes both traces."""

    def __init__(self, options, host_path, device_path):
        self.options, self.rng = options, random.Random(options.seed)
        self.extras = set(filter(None, options.extras.split(",")))
        unknown = self.extras - set(EXTRAS)
        if unknown:
            raise ValueError("unknown extras: %s" % ", ".join(sorted(unknown)))
        self.host = ListWriter(host_path, {"schema": options.schema, "pid": PROCESS, "time": "2024-04-18 09:53:29",
                                           "start_ts": 2028842}, "nodes", options.compact)
        self.device = ListWriter(device_path, {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}],
                                               "distributedInfo": {"backend": "nccl", "rank": options.rank, "world_size": 4}},
                                 "traceEvents", options.compact)
        self.last_node, self.record, self.external, self.correlation, self.tensor = 1, 0, 100, 1000, 1
        self.events, self.threads, self.stream_free, self.kernel_end = [], {}, {}, {}
        self.thread(1)

    # ---- small things

    def stamp(self, time):
        return round(time, 3) if self.options.float_time else int(time)

    def lasting(self, low, high):
        value = self.rng.uniform(low, high)
        return round(value, 3) if self.options.float_time else max(1, int(value))

    def new_node(self):
        self.last_node += 1 if self.rng.random() < 0.6 else 2         # ids have holes, as in real traces
        return self.last_node

    def thread(self, number):
        if number not in self.threads:
            now = max([t.now for t in self.threads.values()], default=float(self.options.base_time))
            self.threads[number] = Thread(number, self.new_node(), now)
        return self.threads[number]

    def new_tensor(self, shape, kind="float", place="cuda:0"):
        """(value, shape, type) of a fresh tensor."""
        self.tensor += 2
        count = 1
        for extent in shape:
            count *= extent
        return [self.tensor, self.tensor + 1, 0, count, ELEMENT_BYTES[kind], place], list(shape), "Tensor(%s)" % kind

    def arguments(self, items):
        record = {key: [item[i] for item in items] for i, key in enumerate(("values", "shapes", "types"))}
        if self.options.schema.startswith("1.1.1"):
            record["strides"] = [[1] * len(shape) if kind.startswith("Tensor") else [] for _, shape, kind in items]
        return record

    def host_node(self, name, ident, parent, rf, thread, scope=0, sequence=-1, forward=0, signature="", inputs=(), outputs=(), more=()):
        values = [("rf_id", "uint64", rf), ("fw_parent", "uint64", 0), ("seq_id", "int64", sequence), ("scope", "uint64", scope),
                  ("tid", "uint64", thread), ("fw_tid", "uint64", forward), ("op_schema", "string", signature)]
        if self.options.schema.startswith("1.1"):
            values += [("kernel_backend", "string", ""), ("kernel_file", "string", "")]
        attrs = [{"name": n, "type": t, "value": v} for n, t, v in values + list(more)]
        return {"id": ident, "name": name, "ctrl_deps": parent, "inputs": self.arguments(inputs), "outputs": self.arguments(outputs),
                "attrs": attrs}

    # ---- operators, kernels, synchronisation

    def begin(self, thread, name, cat="cpu_op", traced=True, info=None, **host):
        """Open an operator; the result goes to finish()."""
        thread.now += self.lasting(0.3, 1.0)
        self.record += 1
        self.external += 1
        node = None
        if traced:
            node = self.host_node(name, self.new_node(), thread.open[-1], self.record, thread.number, **host)
        event = {"ph": "X", "cat": cat, "name": name, "pid": PROCESS, "tid": thread.tid, "ts": self.stamp(thread.now), "dur": 0,
                 "args": {"External id": self.external, "Record function id": self.record, "Ev Idx": self.record, **(info or {})}}
        self.events.append(event)
        thread.open.append(node["id"] if node else thread.open[-1])
        return thread, event, node, thread.now

    def finish(self, opened):
        thread, event, node, began = opened
        thread.now += self.lasting(0.5, 3.0)
        event["dur"] = self.stamp(thread.now - began) if self.options.float_time else int(thread.now) - int(began)
        thread.open.pop()
        if node:
            self.host.add(node)                                       # completion order, as the observer writes it

    def launch(self, thread, kernel, stream=7, call="cudaLaunchKernel", cat="kernel", lost=False, info=None, after=0):
        """A runtime call, the device operator it starts, and the arrow between them."""
        self.correlation += 1
        number, thread.now = self.correlation, thread.now + self.lasting(0.2, 0.8)
        called, busy = thread.now, self.lasting(2, 6)
        self.events.append({"ph": "X", "cat": "cuda_driver" if call.startswith("cu") and not call.startswith("cuda") else "cuda_runtime",
                            "name": call, "pid": PROCESS, "tid": thread.tid, "ts": self.stamp(called), "dur": busy,
                            "args": {"External id": self.external, "cbid": 211, "correlation": number + 500000 * lost}})
        thread.now += busy
        start = max(called + self.lasting(3, 9), self.stream_free.get(stream, 0), after)
        start = start if self.options.float_time else int(start) + 1
        length = self.lasting(5, 40) if stream == 7 else self.lasting(30, 120)
        self.events.append({"ph": "X", "cat": cat, "name": kernel, "pid": 0, "tid": stream, "ts": self.stamp(start), "dur": length,
                            "args": {"External id": self.external, "device": 0, "context": 1, "stream": stream,
                                     "correlation": number, **(info or {})}})
        self.kernel_end[stream] = start + length
        self.stream_free[stream] = start + length + self.lasting(0.5, 2)
        for ph, pid, tid, when in (("s", PROCESS, thread.tid, called), ("f", 0, stream, start)):
            self.events.append({"ph": ph, "id": number, "pid": pid, "tid": tid, "ts": self.stamp(when), "cat": "ac2g", "name": "ac2g"})

    def synchronise(self, thread, kind="Context Sync", call="cudaDeviceSynchronize", stream=-1):
        self.correlation += 1
        self.external += 1
        thread.now += self.lasting(0.2, 1)
        began = thread.now
        waits = self.kernel_end.values() if stream < 0 else [self.kernel_end.get(stream, 0)]
        until = max([began + 2, *waits]) + 3
        common = {"External id": self.external, "correlation": self.correlation}
        length = self.stamp(until - began) if self.options.float_time else int(until) - int(began)
        self.events.append({"ph": "X", "cat": "cuda_runtime", "name": call, "pid": PROCESS, "tid": thread.tid, "ts": self.stamp(began),
                            "dur": length, "args": {**common, "cbid": 165}})
        self.events.append({"ph": "X", "cat": "cuda_sync", "name": kind, "pid": 0, "tid": stream, "ts": self.stamp(began),
                            "dur": self.stamp(length - 1), "args": {**common, "stream": stream, "device": 0, "context": 1}})
        thread.now = until

    def operator(self, thread, name, kernels=(), inside=(), kind="float", sequence=-1, forward=0, traced=True, **launch):
        """A tensor operator with nested operators and kernels."""
        scalars = [(1, [], "Int"), ("<None>", [], "None"), (0.5, [], "Double"), (True, [], "Bool")]
        opened = self.begin(thread, name, traced=traced, inputs=[self.new_tensor((16, 64), kind)] + scalars,
                            outputs=[self.new_tensor((16, 64), kind)], sequence=sequence, forward=forward,
                            signature=name + "(Tensor self) -> Tensor")
        for inner in inside:
            self.operator(thread, inner, kind=kind)
        for kernel in kernels:
            self.launch(thread, kernel, **launch)
        self.finish(opened)

    def collective(self, thread, name, elements, group):
        operator, annotation, kernel = COLLECTIVES[name]
        tensors = [self.new_tensor((elements,))]
        if "lists" in self.extras:
            pair = [self.new_tensor((elements,)), self.new_tensor((elements // 2,))]
            tensors = [([t[0] for t in pair], [t[1] for t in pair], "GenericList[Tensor(float),Tensor(float)]")]
        described = [("collective_name", "string", name), ("dtype", "string", "Float"), ("in_msg_nelems", "uint64", elements),
                     ("out_msg_nelems", "uint64", elements), ("in_split_size", "string", "[]"), ("out_split_size", "string", "[]"),
                     ("global_rank_start", "uint64", 0), ("global_rank_stride", "uint64", 1), ("pg_name", "string", group),
                     ("pg_desc", "string", "default_pg"), ("pg_size", "uint64", 4)] if self.options.schema.startswith("1.1") else []
        info = {"Process Group Name": group, "Collective name": name}
        opened = [self.begin(thread, operator, inputs=tensors, outputs=tensors, signature=operator + "(Tensor[] t) -> Tensor[]"),
                  self.begin(thread, "record_param_comms", outputs=tensors, more=described, info=info,
                             inputs=tensors + [([group, "default_pg"], [[], []], "GenericList[String,String]")])]
        if not self.options.kernel_under_record:
            opened.append(self.begin(thread, annotation, cat="user_annotation", inputs=tensors, scope=7))
        if "coalesced" in self.extras:
            opened.append(self.begin(thread, "nccl:coalesced", cat="user_annotation", scope=7))
        self.launch(thread, kernel, stream=20, call="cudaLaunchKernelExC", info=info, after=self.kernel_end.get(7, 0))
        for item in reversed(opened):
            self.finish(item)

    # ---- the program

    def forward(self, thread):
        extras = self.extras
        if "memcpy" in extras:
            self.operator(thread, "aten::to", ["Memcpy HtoD (Pageable -> Device)"], call="cudaMemcpyAsync", cat="gpu_memcpy")
        whole = self.begin(thread, "DistributedDataParallel.forward", cat="user_annotation", scope=7) if "ddp" in extras else None
        for layer in range(self.options.layers):
            self.operator(thread, "aten::linear", inside=["aten::t", "aten::transpose"])
            self.operator(thread, "aten::addmm", ["sgemm_128x64_tn"], sequence=layer)
            self.operator(thread, "aten::relu", ["vectorized_elementwise_kernel<4>(int)"], sequence=layer,
                          call="cuLaunchKernel" if "driver" in extras else "cudaLaunchKernel")
            if "multikernel" in extras:
                self.operator(thread, "aten::sum", ["reduce_kernel_a", "reduce_kernel_b"])
        if whole:
            self.finish(whole)
        if "orphan" in extras:
            self.operator(thread, "aten::orphan", ["orphan_kernel"], lost=True)
        if "memset" in extras:
            self.operator(thread, "aten::zero_", ["Memset (Device)"], call="cudaMemsetAsync", cat="gpu_memset")
        if "untraced" in extras:
            self.operator(thread, "aten::untraced", ["kernel_of_untraced"], traced=False)

    def backward(self, thread):
        names = list(filter(None, self.options.collectives.split(",")))
        for layer in reversed(range(self.options.layers)):
            outer = self.begin(thread, "autograd::engine::evaluate_function: AddmmBackward0", sequence=layer, forward=1)
            inner = self.begin(thread, "AddmmBackward0", sequence=layer, forward=1)
            self.operator(thread, "aten::mm", ["sgemm_64x64_nt"], sequence=layer, forward=1)
            self.finish(inner)
            self.finish(outer)
            for number, name in enumerate(names):
                self.collective(thread, name, 1024 * (layer + 1), str(number % 2))
            if self.options.gap and layer % 2:
                thread.now += self.options.gap

    def iteration(self, number):
        main, extras = self.thread(1), self.extras
        step = None
        if not self.options.no_step:
            step = self.begin(main, "ProfilerStep#%d" % number, cat="user_annotation", scope=7, traced="stepnode" in extras)
        self.forward(main)
        worker = main if self.options.one_thread else self.thread(2)
        worker.now = max(worker.now, main.now + 2 + self.options.gap)
        self.backward(worker)
        main.now = max(main.now, worker.now + 3 + self.options.gap)
        if "thread3" in extras:
            third = self.thread(3)
            third.now = main.now + 1500
            self.operator(third, "aten::pin_memory")
            self.operator(third, "aten::copy_")
            main.now = third.now + 1500
        update = self.begin(main, "Optimizer.step#SGD.step", cat="user_annotation", scope=7)
        for _ in range(self.options.layers):
            self.operator(main, "aten::_foreach_add_", ["multi_tensor_apply_kernel"], kind="c10::BFloat16")
        self.finish(update)
        if not self.options.no_sync:
            self.synchronise(main)
        if "streamsync" in extras:
            self.operator(main, "aten::item", ["Memcpy DtoH (Device -> Pageable)"], call="cudaMemcpyAsync", cat="gpu_memcpy")
            self.synchronise(main, "Stream Sync", "cudaStreamSynchronize", 7)
        self.operator(main, "aten::detach")
        if step:
            self.finish(step)

    def play(self):
        if "pginit" in self.extras:
            text = '[{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0,1,2,3], "group_size": 4, "group_count": 1}]'
            self.finish(self.begin(self.thread(1), "## process_group:init ##", cat="user_annotation", inputs=[(text, [], "String")]))
        number = 0
        while number < self.options.iterations or self.device.bytes < self.options.target_mb * 1e6:
            self.iteration(number)
            for event in self.events:
                self.device.add(event)
            self.events = []
            number += 1
        for thread in self.threads.values():
            self.host.add(self.host_node("[pytorch|profiler|execution_trace|thread]", thread.node, 1, 0, thread.number, scope=7))
        self.host.add(self.host_node("[pytorch|profiler|execution_trace|process]", 1, 1, 0, 0, scope=7))
        self.host.close({"finish_ts": 2028999})
        self.device.close({"traceName": "synthetic"})


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="host.json")
    parser.add_argument("--device", default="device.json")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=1, help="at least this many")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--target-mb", type=float, default=0, help="go on until the device trace has this size")
    parser.add_argument("--schema", default=SCHEMAS[0])
    parser.add_argument("--float-time", action="store_true", help="fractional microseconds")
    parser.add_argument("--base-time", type=float, default=1000000)
    parser.add_argument("--collectives", default="allreduce", help="of " + ",".join(COLLECTIVES))
    parser.add_argument("--extras", default="", help="of " + ",".join(EXTRAS))
    parser.add_argument("--gap", type=float, default=0, help="silence between phases, us")
    parser.add_argument("--one-thread", action="store_true", help="backward pass on the main thread")
    parser.add_argument("--no-sync", action="store_true")
    parser.add_argument("--no-step", action="store_true", help="no ProfilerStep annotation (the reference linker fails)")
    parser.add_argument("--kernel-under-record", action="store_true", help="collective kernels directly under record_param_comms")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--compact", action="store_true")
    return parser


def random_options(rng, seed, more=()):
    words = ["--seed", seed, "--iterations", rng.randint(1, 3), "--layers", rng.randint(1, 4), "--schema", rng.choice(SCHEMAS),
             "--gap", rng.choice([0, 0, 900, 1100, 5000]), "--base-time", rng.choice([1000, 1000000, 1713432809123456]),
             "--collectives", ",".join(rng.sample(sorted(COLLECTIVES), rng.randint(0, 4))),
             "--extras", ",".join(rng.sample(EXTRAS, rng.randint(0, 6)))]
    words += [flag for flag in ("--float-time", "--one-thread", "--no-sync", "--kernel-under-record") if rng.random() < 0.3]
    return make_parser().parse_args([str(word) for word in words] + list(more))


def write_pair(options, host, device):
    Recorder(options, host, device).play()


def main():
    if sys.argv[1:2] == ["--random"]:
        out = sys.argv[sys.argv.index("--out") + 1] if "--out" in sys.argv else "pair_case"
        os.makedirs(out, exist_ok=True)
        seed = int(sys.argv[2])
        return write_pair(random_options(random.Random(seed), seed), os.path.join(out, "host.json"), os.path.join(out, "device.json"))
    options = make_parser().parse_args()
    write_pair(options, options.host, options.device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
