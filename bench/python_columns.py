#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One million nodes in Python: BUILD/python-venv/bin/python bench/python_columns.py [NODES]

Prints seconds, on the wall and of the CPU, to open, to walk with six attributes, as rows, and for all columns; and, where python3-protobuf is there,
the loop over messages that it replaces.  Sums are compared first.
"""

import pathlib
import sys
import tempfile
import time

import orrery


def timed(what, work):
    begin, cpu = time.perf_counter(), time.process_time()
    out = work()
    print(f"{what:34} {time.perf_counter() - begin:9.4f} s, {time.process_time() - cpu:9.4f} s of CPU")
    return out


def make(path, count):
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
    return sum(row[0] for row in trace.rows("id", "name", "type", "duration_us", "comm_size", "data_deps"))


def messages():
    """A class of protobuf with the fields that are read; None: there is no protobuf."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        return None
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="et", syntax="proto3")
    attr = file.message_type.add(name="Attribute")
    attr.field.add(name="name", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    attr.field.add(name="int64_val", number=9, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL)
    node = file.message_type.add(name="Node")
    for name, number, kind, label in (("id", 1, field.TYPE_UINT64, field.LABEL_OPTIONAL),
                                      ("name", 2, field.TYPE_STRING, field.LABEL_OPTIONAL),
                                      ("type", 3, field.TYPE_INT32, field.LABEL_OPTIONAL),
                                      ("data_deps", 5, field.TYPE_UINT64, field.LABEL_REPEATED),
                                      ("duration_micros", 7, field.TYPE_UINT64, field.LABEL_OPTIONAL)):
        node.field.add(name=name, number=number, type=kind, label=label)
    node.field.add(name="attr", number=10, type=field.TYPE_MESSAGE, label=field.LABEL_REPEATED, type_name=".et.Attribute")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("et.Node"))


def read_size(file):
    size = shift = 0
    while True:
        byte = file.read(1)
        if not byte:
            return None
        size |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return size
        shift += 7


def loop(path, make_node):
    total = 0
    with open(path, "rb") as file:
        file.read(read_size(file))
        while True:
            size = read_size(file)
            if size is None:
                return total
            node = make_node()
            node.ParseFromString(file.read(size))
            node.name, node.type, node.duration_micros, list(node.data_deps)
            next((a.int64_val for a in node.attr if a.name == "comm_size"), None)
            total += node.id


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "many.et"
        timed("make and write", lambda: make(path, count))
        trace = timed("open", lambda: orrery.open(path))[0]
        trace.columns["id"]  # imports NumPy
        columns = timed("all columns", lambda: dict(trace.columns))
        want = int(columns["id"].sum())
        assert timed("walk, six attributes", lambda: walk(trace)) == want
        assert timed("rows of six columns", lambda: rows(trace)) == want
        make_node = messages()
        if make_node is not None:
            assert timed("a loop over protobuf messages", lambda: loop(path, make_node)) == want


main()
