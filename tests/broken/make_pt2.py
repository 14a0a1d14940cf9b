#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/broken/pt2 and tests/fuzz/seeds/pt2: small exported programs, and one fault in each.

    python3 tests/broken/make_pt2.py"""

import copy
import io
import json
import pathlib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIME = (1980, 1, 1, 0, 0, 0)


def size(s):
    if isinstance(s, int):
        return {"as_int": s}
    text, _, hint = s.partition("@")
    return {"as_expr": {"expr_str": text, "hint": {"as_int": int(hint)} if hint else None}}


def tensor(sizes, strides=None, dtype=7):
    if strides is None:
        strides = [1]
        for s in reversed(sizes[1:]):
            strides.insert(0, strides[0] * s)
        strides = strides[: len(sizes)]
    return {
        "dtype": dtype,
        "sizes": [size(s) for s in sizes],
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": [size(s) for s in strides],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


def name(n):
    return {"as_tensor": {"name": n}}


def node(target, ins, outs, **args):
    inputs = [{"name": "self", "arg": name(i), "kind": 1} for i in ins]
    inputs += [{"name": k, "arg": v, "kind": 1} for k, v in args.items()]
    return {
        "target": "torch.ops." + target,
        "inputs": inputs,
        "outputs": [name(o) for o in outs],
        "metadata": {
            "stack_trace": 'File "/src/model.py", line 7, in forward\n    y = f(x)',
            "nn_module_stack": "L__self__,,model.Net;L__self__a,a,model.Block",
        },
    }


def program(values, nodes, outputs, parameters=("w",), inputs=("x",)):
    specs = [{"parameter": {"arg": {"name": p}, "parameter_name": p}} for p in parameters]
    specs += [{"user_input": {"arg": name(i)}} for i in inputs]
    return {
        "graph_module": {
            "graph": {
                "inputs": [name(n) for n in (*parameters, *inputs)],
                "outputs": [name(o) for o in outputs],
                "nodes": nodes,
                "tensor_values": values,
                "sym_int_values": {},
                "sym_bool_values": {},
                "is_single_tensor_return": False,
            },
            "signature": {"input_specs": specs, "output_specs": [{"user_output": {"arg": name(o)}} for o in outputs]},
            "module_call_graph": [],
        },
        "opset_version": {"aten": 10},
        "range_constraints": {"s0": {"min_val": 1, "max_val": 64}},
        "schema_version": {"major": 8, "minor": 17},
        "torch_version": "2.11.0",
    }


def linear():
    values = {"w": tensor([6, 4]), "x": tensor([2, 4]), "y": tensor([2, 6]), "z": tensor([2, 6])}
    return program(values, [node("aten.linear.default", "xw", "y"), node("aten.relu.default", "y", "z")], "z")


def open_size(hint="s0@4"):
    values = {"w": tensor([6, 4]), "x": tensor([hint, 4], [4, 1]), "y": tensor(["2*s0", 6], [6, 1])}
    return program(values, [node("aten.linear.default", "xw", "y")], "y")


def views():
    values = {
        "x": tensor([2, 6]),
        "t": tensor([6, 2], [1, 6]),
        "r": tensor([12]),
        "a": tensor([2, 3], [6, 1]),
        "b": tensor([2, 3], [6, 1]),
        "c": tensor([12]),
    }
    split = node("aten.split_with_sizes.default", "x", "")
    split["outputs"] = [{"as_tensors": [{"name": "a"}, {"name": "b"}]}]
    nodes = [
        node("aten.transpose.int", "x", "t"),
        node("aten.reshape.default", "t", "r"),
        split,
        node("aten.add_.Tensor", "rr", "c"),
    ]
    return program(values, nodes, "bc", parameters=())


def nested():
    body = {
        "inputs": [name("arg")],
        "outputs": [name("out")],
        "nodes": [node("aten.relu.default", ["arg"], ["out"])],
        "tensor_values": {"arg": tensor([4]), "out": tensor([4])},
    }
    outer = node("higher_order.wrap_with_set_grad_enabled", "", "y")
    outer["inputs"] = [
        {"name": "", "arg": {"as_bool": False}, "kind": 1},
        {"name": "", "arg": {"as_graph": {"name": "body", "graph": body}}, "kind": 1},
        {"name": "", "arg": name("x"), "kind": 1},
    ]
    return program({"x": tensor([4]), "y": tensor([4])}, [outer], "y", parameters=())


def collective():
    reduce = node("_c10d_functional.all_reduce.default", "x", "y", group_name={"as_string": "0"})
    values = {"x": tensor([4]), "y": tensor([4]), "z": tensor([4])}
    return program(values, [reduce, node("_c10d_functional.wait_tensor.default", "y", "z")], "z", parameters=())


def changed(base, *path_and_value):
    *path, last, value = path_and_value
    out = copy.deepcopy(base)
    at = out
    for p in path:
        at = at[p]
    at[last] = value
    return out


def archive(files, method=zipfile.ZIP_STORED):
    to = io.BytesIO()
    with zipfile.ZipFile(to, "w", method) as z:
        for n, data in files.items():
            info = zipfile.ZipInfo(n, TIME)
            info.compress_type = method
            z.writestr(info, data)
    return to.getvalue()


def text(p):
    return json.dumps(p).encode()


def main():
    graph = ("graph_module", "graph")
    base = linear()
    good = {
        "linear.json": text(base),
        "open.json": text(open_size()),
        "open_repr.json": text(
            changed(
                open_size("Symbol('s0', positive=True, integer=True)@4"),
                *graph, "tensor_values", "y", "sizes", 0,
                size("Add(Mul(Integer(2), Symbol('s0', integer=True)), FloorDiv(Symbol('s0', integer=True), Integer(3)))"),
            )
        ),
        "views.json": text(views()),
        "nested.json": text(nested()),
        "collective.json": text(collective()),
        "stored.pt2": archive({"a/archive_format": b"pt2", "a/models/model.json": text(base)}),
        "deflated.pt2": archive({"serialized_exported_program.json": text(base)}, zipfile.ZIP_DEFLATED),
    }
    cond = nested()
    cond["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.higher_order.cond"
    broken = {
        "empty.json": b"",
        "cut.json": text(base)[:400],
        "list.json": b"[]",
        "version.json": text(changed(base, "schema_version", "major", 99)),
        "no_graph.json": text(changed(base, "graph_module", {})),
        "no_nodes.json": text(changed(base, *graph, "nodes", [])),
        "nodes_number.json": text(changed(base, *graph, "nodes", 5)),
        "unknown_value.json": text(changed(base, *graph, "nodes", 0, "inputs", 0, "arg", name("q"))),
        "made_twice.json": text(changed(base, *graph, "nodes", 1, "outputs", [name("x")])),
        "no_meta.json": text(changed(base, *graph, "nodes", 1, "outputs", [name("q")])),
        "dtype.json": text(changed(base, *graph, "tensor_values", "x", "dtype", 77)),
        "sparse.json": text(changed(base, *graph, "tensor_values", "x", "layout", 2)),
        "negative.json": text(changed(base, *graph, "tensor_values", "x", "sizes", 0, size(-2))),
        "huge.json": text(changed(base, *graph, "tensor_values", "x", "sizes", 0, size(1 << 62))),
        "dimensions.json": text(changed(base, *graph, "tensor_values", "x", "sizes", [size(1)] * 100)),
        "ranks.json": text(changed(base, *graph, "tensor_values", "x", "strides", [size(1)])),
        "no_hint.json": text(open_size("s0")),
        "expression.json": text(changed(open_size(), *graph, "tensor_values", "y", "sizes", 0, size("2*(s0"))),
        "zero.json": text(changed(open_size(), *graph, "tensor_values", "y", "sizes", 0, size("4//(s0-s0)"))),
        "data_dependent.json": text(changed(base, *graph, "tensor_values", "y", "sizes", 0, size("u0"))),
        "symbol.json": text(changed(open_size(), *graph, "tensor_values", "y", "sizes", 0, size("Symbol('s0"))),
        "cond.json": text(cond),
        "nested_inputs.json": text(changed(nested(), *graph, "nodes", 0, "inputs", 1, "arg", "as_graph", "graph", "inputs", [])),
        "alone.json": text(collective()),
        "group.json": text(changed(collective(), *graph, "nodes", 0, "inputs", 1, "arg", {"as_string": "7"})),
        "output.json": text(changed(base, "graph_module", "signature", "output_specs", 0, "user_output", "arg", name("q"))),
        "mutation.json": text(
            changed(base, "graph_module", "signature", "output_specs", 0, {"buffer_mutation": {"arg": {"name": "z"}, "buffer_name": "no"}})
        ),
        "two_models.pt2": archive({"a/models/x.json": text(base), "a/models/y.json": text(base)}),
        "no_model.pt2": archive({"a/b": b"x"}),
        "torchscript.pt2": archive({"a/code/x.py": b"x", "a/data.pkl": b""}),
        "weights.pt2": archive({"a/data.pkl": b"x"}),
        "format.pt2": archive({"a/archive_format": b"zip", "a/models/model.json": text(base)}),
        "cut.pt2": good["stored.pt2"][:-30],
        "crc.pt2": good["stored.pt2"].replace(b"linear", b"linaer", 1),
        "up.pt2": archive({"../a/models/model.json": text(base)}),
        "bomb.pt2": archive({"a/models/model.json": b" " * (24 << 20)}, zipfile.ZIP_DEFLATED),
    }
    for folder, items in (("fuzz/seeds/pt2", good), ("broken/pt2", broken)):
        (ROOT / folder).mkdir(parents=True, exist_ok=True)
        for n, data in items.items():
            (ROOT / folder / n).write_bytes(data)


main()
