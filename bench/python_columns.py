#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One million nodes in Python: BUILD/python-venv/bin/python bench/python_columns.py [NODES]

Prints CPU seconds, the best of several runs: to open a file, to iterate over its nodes with six attributes each, as
objects and as rows, and for all columns; and how many times longer the usual loop over protobuf messages of Chakra
scripts takes, with each installed back end of python3-protobuf.  That loop decodes the file as it goes, so it is
compared with opening plus iterating.  Every loop sums up the ids, and the sums must agree.
"""

import os
import struct
import subprocess
import sys
import tempfile
import time

FIELDS = ("id", "name", "type", "duration_us", "comm_size", "data_deps")


def best(work, times=5):
    """CPU seconds, and the result of the work."""
    least = float("inf")
    for _ in range(times):
        begin = time.process_time()
        out = work()
        least = min(least, time.process_time() - begin)
    return least, out


# ---- ours ----

def make(path, count):
    import orrery
    t = orrery.Trace()
    for i in range(count):
        if i % 4 == 3:
            t.collective("ALL_REDUCE", 1 << 20, deps=[i - 1], name=f"all_reduce_{i}", group=i % 7)
        else:
            t.compute(f"gemm_{i}", num_ops=1000 + i, tensor_size=64, deps=[i - 1] if i else ())
    t.write(path)


def walk(trace):
    total = 0
    for n in trace:
        n.name, n.type, n.duration_us, n.comm_size, n.data_deps
        total += n.id
    return total


def rows(trace):
    total = 0
    for id, name, type, duration, size, deps in trace.rows(*FIELDS):
        total += id
    return total


# ---- theirs ----

def messages():
    """Classes of protobuf for the whole schema."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    f = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="et", syntax="proto3")

    def add(message, name, number, kind, repeated=False, **more):
        message.field.add(name=name, number=number, type=kind,
                          label=f.LABEL_REPEATED if repeated else f.LABEL_OPTIONAL, **more)
    attr = file.message_type.add(name="AttributeProto")
    add(attr, "name", 1, f.TYPE_STRING)
    add(attr, "doc_string", 2, f.TYPE_STRING)
    attr.oneof_decl.add(name="value")
    number = 3
    for word in ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64",
                 "sfixed32", "sfixed64", "bool", "string", "bytes"):
        kind = getattr(f, f"TYPE_{word.upper()}")
        add(file.message_type.add(name=f"{word.title()}List"), "values", 1, kind, repeated=True)
        add(attr, f"{word}_val", number, kind, oneof_index=0)
        add(attr, f"{word}_list", number + 1, f.TYPE_MESSAGE, oneof_index=0, type_name=f".et.{word.title()}List")
        number += 2
    metadata = file.message_type.add(name="GlobalMetadata")
    add(metadata, "version", 1, f.TYPE_STRING)
    add(metadata, "attr", 2, f.TYPE_MESSAGE, repeated=True, type_name=".et.AttributeProto")
    io = file.message_type.add(name="IOInfo")
    for at, name in enumerate(("values", "shapes", "types"), 1):
        add(io, name, at, f.TYPE_STRING)
    node = file.message_type.add(name="Node")
    for at, (name, kind, repeated, more) in enumerate((
            ("id", f.TYPE_UINT64, False, {}), ("name", f.TYPE_STRING, False, {}), ("type", f.TYPE_INT32, False, {}),
            ("ctrl_deps", f.TYPE_UINT64, True, {}), ("data_deps", f.TYPE_UINT64, True, {}),
            ("start_time_micros", f.TYPE_UINT64, False, {}), ("duration_micros", f.TYPE_UINT64, False, {}),
            ("inputs", f.TYPE_MESSAGE, False, {"type_name": ".et.IOInfo"}),
            ("outputs", f.TYPE_MESSAGE, False, {"type_name": ".et.IOInfo"}),
            ("attr", f.TYPE_MESSAGE, True, {"type_name": ".et.AttributeProto"})), 1):
        add(node, name, at, kind, repeated, **more)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return [factory.GetPrototype(pool.FindMessageTypeByName(f"et.{name}")) for name in ("GlobalMetadata", "Node")]


def read_size(file):
    size = shift = 0
    while True:
        byte = file.read(1)
        if not byte:
            return None
        value = struct.unpack("<B", byte)[0]
        size |= (value & 127) << shift
        if value < 128:
            return size
        shift += 7


def decode(file, message):
    size = read_size(file)
    if size is None:
        return False
    message.ParseFromString(file.read(size))
    return True


def loop(path):
    metadata, node_class = messages()
    total = 0
    with open(path, "rb") as file:
        decode(file, metadata())
        node = node_class()
        while decode(file, node):
            node.name, node.type, node.duration_micros, list(node.data_deps)
            for attr in node.attr:
                if attr.name == "comm_size":
                    attr.int64_val
                    break
            total += node.id
    return total


def theirs(path, backend):
    """Seconds and the sum; None: this back end is not installed."""
    got = subprocess.run([sys.executable, __file__, "--loop", path], capture_output=True, text=True,
                         env={**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": backend})
    words = got.stdout.split()
    return (float(words[1]), int(words[2])) if got.returncode == 0 and words[0] == backend else None


def loop_alone(path):
    from google.protobuf.internal import api_implementation
    backend = api_implementation.Type()
    seconds, total = best(lambda: loop(path), 3 if backend != "python" else 1)
    print(backend, seconds, total)


# ---- the table ----

def measure(path, what):
    import orrery
    opening, traces = best(lambda: orrery.open(path, threads=1), 8)
    trace = traces[0]
    trace.columns["id"]  # imports NumPy
    columns, all_columns = best(lambda: dict(trace.columns))
    want = int(all_columns["id"].sum())
    walking, walked = best(lambda: walk(trace), 8)
    by_rows, rowed = best(lambda: rows(trace), 8)
    assert walked == rowed == want
    ours = (("all columns", columns), ("walk, six attributes", walking), ("rows of six columns", by_rows),
            ("open and walk", opening + walking), ("open and rows", opening + by_rows))
    found = {backend: theirs(path, backend) for backend in ("upb", "cpp", "python")}
    here = [backend for backend, got in found.items() if got]
    assert all(found[backend][1] == want for backend in here)
    print(f"{what}: {len(trace)} nodes, {os.path.getsize(path) / 1e6:.0f} MB; protobuf in Python: "
          + ", ".join(f"{found[b][0]:.2f} s with {b}" if b in here else f"no {b}" for b in found))
    for name, seconds in (("open", opening), *ours):
        print(f"  {name:22} {seconds:8.4f} s" + "".join(f"   {found[b][0] / seconds:9.1f} x {b}" for b in here if name[:5] != "all c"
                                                       and name != "open"))


def main():
    if sys.argv[1:2] == ["--loop"]:
        return loop_alone(sys.argv[2])
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"Python {sys.version.split()[0]}, seconds of CPU, load {os.getloadavg()[0]:.0f}")
    with tempfile.TemporaryDirectory() as folder:
        layered = os.path.join(folder, "layered")
        subprocess.run([sys.executable, "-m", "orrery", "gen", "layered", "--nodes", str(count), "-o", layered], check=True,
                       stdout=subprocess.DEVNULL)
        measure(layered + ".0.et", "a graph with names, attributes and dependencies as PyTorch has them")
        bare = os.path.join(folder, "bare.et")
        make(bare, count)
        measure(bare, "a chain of small nodes, every name another")
    return None


if __name__ == "__main__":
    main()
