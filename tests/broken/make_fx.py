#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captured steps with one defect each, in tests/broken/fx, and a few good ones for the fuzzer.  TABLE says what is expected of
'orrery convert fx': words of the error.  Run it after a change; a test compares the files with the table."""

import copy
import gzip
import json
import pathlib

HERE = pathlib.Path(__file__).parent


def tensor(storage, shape=(4, 4), offset=0):
    return {"shape": list(shape), "dtype": "float32", "stride": [4, 1], "offset": offset, "storage": storage, "device": "cpu"}


def graph(rank, nodes):
    ops = ["aten.mm.default", "aten.t.default", "c10d.allreduce_.default", "orrery.wait", "c10d.send.default",
           "c10d.recv_.default", "aten.add_.Tensor", "mine.strange.default", "c10d.recv_any_source_.default"]
    return {"ops": ops, "modules": ["", "Net.up"], "lines": ["net.py:3"], "storages": [64, 64, 64, 64],
            "kept": [[0, "parameter"], [1, "state"]], "tensors": [tensor(i) for i in range(4)] + [tensor(0, (2, 4), 8)],
            "nodes": nodes, "rank": rank}


MM = {"op": 0, "phase": "forward", "in": [0, 1], "out": [2], "module": 1, "line": 0}
VIEW = {"op": 1, "phase": "forward", "in": [2], "out": [2], "view": 1, "module": 1, "line": 0}
REDUCE = {"op": 2, "phase": "backward", "in": [2], "out": [2], "writes": [2], "args": {"async_op": False, "group": 1}}
WAIT = {"op": 3, "phase": "backward", "in": [2], "out": []}
STEP = {"op": 6, "phase": "optimizer", "in": [0, 2], "out": [0], "writes": [0]}
SEND = {"op": 4, "phase": "forward", "in": [2], "out": [], "args": {"dst": 1, "tag": 0, "group": 1}}
RECV = {"op": 5, "phase": "forward", "in": [], "out": [3], "writes": [3], "args": {"src": 0, "tag": 0, "group": 1}}

GOOD = {
    "format": "orrery-capture", "version": 1, "torch": "2.11.0", "world_size": 4, "step": 1,
    "groups": [{"ranks": [0, 1, 2, 3], "what": "world", "family": 0}, {"ranks": [0, 1], "what": "tp", "family": 1},
               {"ranks": [2, 3], "what": "tp", "family": 1}],
    "notes": [], "graphs": [graph(0, [MM, VIEW, REDUCE, WAIT, STEP])],
}
PIPELINE = dict(GOOD, notes=[{"text": "item() at net.py:9 gave 1", "count": 2}], graphs=[graph(0, [MM, SEND]), graph(1, [RECV, MM])])

VAL = {"shape": [4, 4], "dtype": "torch.float32"}
PRINTED = [
    {"pass": "forward", "nodes": [
        {"name": "x", "op": "placeholder", "target": "x", "inputs": [], "args": "()", "val": VAL},
        {"name": "mm", "op": "call_function", "target": "aten.mm.default", "inputs": ["x", "x"], "args": "(x, x)", "val": VAL},
        {"name": "norm", "op": "call_function", "target": "aten.native_layer_norm.default", "inputs": ["mm"],
         "args": "(mm, [4], None, None, 1e-05)", "val": [VAL, {"shape": [4, 1], "dtype": "torch.float32"}]},
        {"name": "getitem", "op": "call_function", "target": "<built-in function getitem>", "inputs": ["norm"],
         "args": "(norm, 0)", "val": VAL},
        {"name": "output", "op": "output", "target": "output", "inputs": ["getitem"], "args": "((getitem,),)", "val": "None"}]},
]


def changed(path, value, base=None):
    """A good capture with one value replaced (or, for ..., removed)."""
    document = copy.deepcopy(GOOD if base is None else base)
    at = document
    for key in path[:-1]:
        at = at[key]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return document


def node(*path):
    return ["graphs", 0, "nodes", *path]


def text(document):
    return json.dumps(document, indent=1).encode()


GOOD_TEXT = text(GOOD)

# name, content, words of the error
TABLE = [
    ("empty.json", b"", "empty"),
    ("not_json.json", b"step = 1\n", ""),
    ("a_number.json", b"7", "a captured step is an object"),
    ("two_documents.json", GOOD_TEXT + b"{}", "unexpected data after"),
    ("cut_off.json", GOOD_TEXT[: len(GOOD_TEXT) // 2], ""),
    ("cut_in_nodes.json", GOOD_TEXT[: GOOD_TEXT.index(b'"optimizer"') + 5], ""),
    ("cut_off.json.gz", gzip.compress(GOOD_TEXT, mtime=0)[:-40], ""),
    ("no_format.json", text(changed(["format"], ...)), '"format" is missing'),
    ("other_format.json", text(changed(["format"], "other")), '"orrery-capture" is expected'),
    ("version_2.json", text(changed(["version"], 2)), "version 2 of the format"),
    ("version_is_a_text.json", text(changed(["version"], "1")), ""),
    ("no_version.json", text(changed(["version"], ...)), '"version" is missing'),
    ("no_world_size.json", text(changed(["world_size"], ...)), '"world_size" is missing'),
    ("world_size_0.json", text(changed(["world_size"], 0)), "a job of 0 ranks"),
    ("world_size_huge.json", text(changed(["world_size"], 4000000000)), "a job of 4000000000 ranks"),
    ("world_size_negative.json", text(changed(["world_size"], -4)), ""),
    ("world_size_5.json", text(changed(["world_size"], 5)), "group 0 holds all 5 ranks"),
    ("no_groups.json", text(changed(["groups"], ...)), '"groups" is missing'),
    ("groups_empty.json", text(changed(["groups"], [])), "group 0 holds all 4 ranks"),
    ("groups_is_an_object.json", text(changed(["groups"], {})), '"groups" is an object'),
    ("group_without_ranks.json", text(changed(["groups", 1], {"family": 1})), 'a group has "ranks" and "family"'),
    ("group_is_empty.json", text(changed(["groups", 1, "ranks"], [])), "group 1 has no ranks"),
    ("group_rank_out_of_range.json", text(changed(["groups", 1, "ranks"], [0, 4])), "group 1 holds rank 4"),
    ("group_rank_twice.json", text(changed(["groups", 1, "ranks"], [0, 0])), "group 1 holds rank 0 twice"),
    ("group_rank_in_two.json", text(changed(["groups", 2, "ranks"], [1, 2])), "both hold rank 1"),
    ("group_sizes_differ.json", text(changed(["groups", 2, "ranks"], [2])), "group 2 has 1 ranks"),
    ("family_skipped.json", text(changed(["groups", 1, "family"], 7)), "group 1 is of family 7"),
    ("family_is_a_text.json", text(changed(["groups", 1, "family"], "tp")), ""),
    ("note_is_a_text.json", text(changed(["notes"], ["so"])), "a note is a string"),
    ("note_without_text.json", text(changed(["notes"], [{"count": 1}])), 'a note has "text"'),
    ("no_graphs.json", text(changed(["graphs"], ...)), '"graphs" is missing'),
    ("graphs_empty.json", text(changed(["graphs"], [])), "no rank was captured"),
    ("graphs_is_an_object.json", text(changed(["graphs"], {})), '"graphs" is a list'),
    ("graph_is_a_number.json", text(changed(["graphs", 0], 1)), "a graph is an object"),
    ("no_rank.json", text(changed(["graphs", 0, "rank"], ...)), 'whose it is: "rank"'),
    ("rank_out_of_range.json", text(changed(["graphs", 0, "rank"], 4)), "a graph of rank 4"),
    ("rank_twice.json", text(changed(["graphs"], GOOD["graphs"] * 2)), "a second graph of rank 0"),
    ("rank_not_in_its_group.json", text(changed(["graphs", 0, "rank"], 2)), "which does not hold that rank"),
    ("ops_is_a_text.json", text(changed(["graphs", 0, "ops"], "aten")), '"ops" is a string'),
    ("op_is_a_number.json", text(changed(["graphs", 0, "ops", 0], 5)), ""),
    ("storage_negative.json", text(changed(["graphs", 0, "storages", 0], -1)), ""),
    ("storage_huge.json", text(changed(["graphs", 0, "storages", 0], 2**63)), "less than 2^63 bytes"),
    ("storages_together.json", text(changed(["graphs", 0, "storages"], [2**62] * 4)), "more than 2^63 bytes together"),
    ("kept_alone.json", text(changed(["graphs", 0, "kept", 0], [0])), 'an entry of "kept" is a pair'),
    ("kept_why.json", text(changed(["graphs", 0, "kept", 0], [0, "always"])), '"parameter", "buffer" or "state"'),
    ("kept_out_of_range.json", text(changed(["graphs", 0, "kept", 0], [9, "state"])), "a storage that does not exist"),
    ("tensors_is_a_number.json", text(changed(["graphs", 0, "tensors"], 3)), "are lists"),
    ("tensor_without_shape.json", text(changed(["graphs", 0, "tensors", 2, "shape"], ...)), 'a tensor has "shape"'),
    ("tensor_shape_negative.json", text(changed(["graphs", 0, "tensors", 2, "shape"], [4, -4])), ""),
    ("tensor_shape_real.json", text(changed(["graphs", 0, "tensors", 2, "shape"], [4, 0.5])), ""),
    ("tensor_shape_symbolic.json", text(changed(["graphs", 0, "tensors", 2, "shape"], ["s0", 4])), "depends on data"),
    ("tensor_huge.json", text(changed(["graphs", 0, "tensors", 2, "shape"], [2**40, 2**40])), "more than 2^63 bytes"),
    ("tensor_deep.json", text(changed(["graphs", 0, "tensors", 2, "shape"], [1] * 65)), "a tensor has at most 64 dimensions"),
    ("tensor_stride_short.json", text(changed(["graphs", 0, "tensors", 2, "stride"], [1])), "different lengths"),
    ("tensor_storage_out_of_range.json", text(changed(["graphs", 0, "tensors", 2, "storage"], 9)), "tensor 2 is in storage 9"),
    ("nodes_is_an_object.json", text(changed(["graphs", 0, "nodes"], {})), "are lists"),
    ("node_is_a_text.json", text(changed(node(0), "mm")), "a node is a string"),
    ("node_without_op.json", text(changed(node(0, "op"), ...)), 'a node has "op"'),
    ("node_op_out_of_range.json", text(changed(node(0, "op"), 99)), 'node 0 refers to entry 99 of "ops"'),
    ("node_module_out_of_range.json", text(changed(node(0, "module"), 2)), 'entry 2 of "modules"'),
    ("node_line_out_of_range.json", text(changed(node(0, "line"), 2)), 'entry 2 of "lines"'),
    ("node_tensor_out_of_range.json", text(changed(node(0, "in"), [0, 50])), "node 0 refers to tensor 50"),
    ("node_in_is_a_number.json", text(changed(node(0, "in"), 0)), '"in" is an integer'),
    ("node_phase.json", text(changed(node(0, "phase"), "sideways")), "a phase is"),
    ("node_args_is_a_list.json", text(changed(node(2, "args"), [1])), '"args" is an array'),
    ("node_group_out_of_range.json", text(changed(node(2, "args", "group"), 9)), "node 2 uses group 9"),
    ("node_group_is_a_text.json", text(changed(node(2, "args", "group"), "tp")), ""),
    ("node_group_of_others.json", text(changed(node(2, "args", "group"), 2)), "which does not hold that rank"),
    ("collective_without_group.json", text(changed(node(2, "args"), {})), "in which process group"),
    ("send_without_peer.json", text(changed(node(1, "args"), {"group": 1}, PIPELINE)), "whom it is for"),
    ("send_to_itself.json", text(changed(node(1, "args", "dst"), 0, PIPELINE)), "a message to itself"),
    ("send_out_of_group.json", text(changed(node(1, "args", "dst"), 2, PIPELINE)), "place 2 of group 1"),
    ("send_without_receive.json", text(changed(["graphs", 1, "nodes"], [MM], PIPELINE)), "which expects 0"),
    ("send_of_another_size.json", text(changed(["graphs", 1, "nodes", 0], dict(RECV, out=[4], writes=[4]), PIPELINE)),
     "a message of 64 bytes, but its peer"),
    ("send_with_another_tag.json", text(changed(["graphs", 1, "nodes", 0, "args", "tag"], 3, PIPELINE)), "which expects 0"),
    ("receive_from_anybody.json", text(changed(["graphs", 1, "nodes", 0], dict(RECV, op=8, args={"group": 1}), PIPELINE)),
     "from whom it comes"),
    ("stage_not_captured.json", text(changed(["graphs"], PIPELINE["graphs"][:1])), "no captured rank has the place of rank 1"),
    ("ranks_differ.json", text(changed(["graphs"], [graph(0, [MM, STEP]), graph(1, [MM, MM])])),
     "ranks 0 and 1 differ at node 1 of rank 1"),
    ("ranks_differ_in_length.json", text(changed(["graphs"], [graph(0, [MM, STEP]), graph(1, [MM])])), "--ranks all"),
    ("printed_empty.json", b"[]", "a list without passes"),
    ("printed_without_nodes.json", text([{"pass": "forward"}]), '"nodes" is expected'),
    ("printed_pass_is_a_text.json", text(["forward"]), "a pass is an object"),
    ("printed_name_unknown.json", text(changed([0, "nodes", 1, "inputs"], ["y"], PRINTED)), "no node with this name"),
    ("printed_without_inputs.json", text(changed([0, "nodes", 1, "inputs"], ..., PRINTED)), '"inputs" is expected'),
    ("printed_call_module.json", text(changed([0, "nodes", 1, "op"], "call_module", PRINTED)), "after it was lowered"),
    ("printed_shape_symbolic.json", text(changed([0, "nodes", 0, "val", "shape"], ["s0", 4], PRINTED)), "depends on data"),
    ("printed_huge.json", text(changed([0, "nodes", 0, "val", "shape"], [2**40, 2**40], PRINTED)), "more than 2^63 bytes"),
    ("printed_two_documents.json", text(PRINTED) + b"[]", "unexpected data after"),
    ("printed_communication.json",
     text(changed([0, "nodes", 1], dict(PRINTED[0]["nodes"][1], target="_c10d_functional.all_reduce.default",
                                        inputs=["x"], args="(x, 'sum', '0')"), PRINTED)), "give --world-size"),
]

SEEDS = {"good.json": GOOD, "pipeline.json": PIPELINE, "printed.json": PRINTED}


def main():
    (HERE / "fx").mkdir(exist_ok=True)
    for name, content, _ in TABLE:
        (HERE / "fx" / name).write_bytes(content)
    seeds = HERE.parent / "fuzz" / "seeds" / "fx"
    seeds.mkdir(exist_ok=True)
    for name, document in SEEDS.items():
        (seeds / name).write_bytes(json.dumps(document, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
