# SPDX-License-Identifier: Apache-2.0
"""orrery.schema: scripts written for the generated modules of protobuf."""

import io
import pathlib
import subprocess
import sys

import pytest

import orrery
from orrery.schema import (
    ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, COMM_COLL_NODE, COMP_NODE, MEM_LOAD_NODE, METADATA_NODE, REDUCE_SCATTER,
    AttributeProto, BoolList, BytesList, DoubleList, Fixed32List, Fixed64List, FloatList, GlobalMetadata, Int32List,
    Int64List, Node, NodeType, Sfixed32List, Sfixed64List, Sint32List, Sint64List, StringList, Uint32List, Uint64List,
    decode_message, encode_message, open_file_rd)


def program(*words, **more):
    return subprocess.run([sys.executable, "-c", "import sys; from orrery.__main__ import become; "
                           "become(sys.argv[1], sys.argv[2:])", *map(str, words)], check=True, **more)


def two_nodes(ids):
    first, second = Node(), Node()
    first.id, second.id = next(ids), next(ids)
    for node in (first, second):
        node.name = "COMP_NODE"
        node.type = COMP_NODE
        node.duration_micros = 5
        node.attr.append(AttributeProto(name="is_cpu_op", bool_val=False))
    second.data_deps.append(first.id)
    return first, second


ALL_KINDS = [
    ("double", dict(double_val=1.2345, doc_string="double"), DoubleList(values=[1.2345, 2.3456])),
    ("float", dict(float_val=1.2345, doc_string="float"), FloatList(values=[1.2345, 2.3456])),
    ("int32", dict(int32_val=12345, doc_string="int32"), Int32List(values=[12345, 23456])),
    ("int64", dict(int64_val=9876543210, doc_string="int64"), Int64List(values=[9876543210, 1234567890])),
    ("uint32", dict(uint32_val=12345, doc_string="uint32"), Uint32List(values=[12345, 23456])),
    ("uint64", dict(uint64_val=9876543210, doc_string="uint64"), Uint64List(values=[9876543210, 1234567890])),
    ("sint32", dict(sint32_val=-12345, doc_string="sint32"), Sint32List(values=[12345, -23456])),
    ("sint64", dict(sint64_val=-9876543210, doc_string="sint64"), Sint64List(values=[9876543210, -1234567890])),
    ("fixed32", dict(fixed32_val=12345), Fixed32List(values=[12345, 23456])),
    ("fixed64", dict(fixed64_val=9876543210), Fixed64List(values=[9876543210, 1234567890])),
    ("sfixed32", dict(sfixed32_val=-12345), Sfixed32List(values=[12345, -23456])),
    ("sfixed64", dict(sfixed64_val=-9876543210), Sfixed64List(values=[9876543210, -1234567890])),
    ("bool", dict(bool_val=True, doc_string="bool"), BoolList(values=[i % 2 == 0 for i in range(10)])),
    ("string", dict(string_val="12345", doc_string="string"), StringList(values=[str(12345 + i) for i in range(10)])),
    ("bytes", dict(bytes_val=b"12345"), BytesList(values=[str(12345 + i).encode() for i in range(10)])),
]


def of_all_kinds(number):
    node = Node(id=number, name="METADATA_NODE", type=METADATA_NODE)
    for name, value, items in ALL_KINDS:
        node.attr.append(AttributeProto(name=name, **value))
        node.attr.append(AttributeProto(name=name + "_list", **{name + "_list": items}))
    return node


def test_what_is_written_is_what_the_generator_of_chakra_writes(tmp_path):
    """chakra_generator is byte for byte the old program (tests/golden); ids count on through its files."""
    program("chakra_generator", "--num_npus", 2, cwd=tmp_path)
    ids = iter(range(100))
    written = {}
    for rank in range(2):
        written[f"one_metadata_node_all_types.{rank}.et"] = [of_all_kinds(next(ids))]
    for rank in range(2):
        node = Node(id=next(ids), name="MEM_LOAD_NODE", type=MEM_LOAD_NODE)
        node.attr.add(name="is_cpu_op", bool_val=False)
        node.attr.add(name="tensor_size", uint64_val=1024)
        written[f"one_remote_mem_load_node.{rank}.et"] = [node]
    for name, nodes in written.items():
        file = io.BytesIO()
        encode_message(file, GlobalMetadata(version=orrery.open(tmp_path / name)[0].version))
        for node in nodes:
            encode_message(file, node)
        assert file.getvalue() == (tmp_path / name).read_bytes(), name


def test_decode_gives_back_what_encode_wrote(tmp_path):
    file = io.BytesIO()
    about = GlobalMetadata(version="1.2.3", attr=[AttributeProto(name="who", string_val="me"),
                                                  AttributeProto(name="how", int64_list=Int64List(values=[1, 2]))])
    node = of_all_kinds(7)
    node.inputs.values = "[1]"
    node.outputs.types = "['Tensor']"
    node.start_time_micros = 3
    encode_message(file, about)
    encode_message(file, node)
    for source in (io.BytesIO(file.getvalue()), path_of(tmp_path, file.getvalue())):
        read, one = GlobalMetadata(), Node()
        assert decode_message(source, read) and decode_message(source, one)
        assert read == about and one == node and one.inputs.values == "[1]" and one.HasField("outputs")
        assert not decode_message(source, one)
        for mine, theirs in zip(node.attr, one.attr):
            member = mine.WhichOneof("value")
            assert (mine.name, mine.doc_string, member) == (theirs.name, theirs.doc_string, theirs.WhichOneof("value"))
            if not member.startswith("float"):  # 32 bits
                assert getattr(mine, member) == getattr(theirs, member)
        assert len(one.attr) == 30 and one.attr[2].float_val == pytest.approx(1.2345, rel=1e-6)


def path_of(folder, content):
    (folder / "one.et").write_bytes(content)
    return open_file_rd(str(folder / "one.et"))


def test_the_loop_of_a_reader(tmp_path):
    """One message object for all nodes, as the tools of Chakra read."""
    with open(tmp_path / "x.et", "wb") as et:
        encode_message(et, GlobalMetadata(version="0.0.4"))
        for node in two_nodes(iter((5, 6))):
            encode_message(et, node)
    et = open_file_rd(tmp_path / "x.et")
    about, node, seen = GlobalMetadata(), Node(), []
    decode_message(et, about)
    while decode_message(et, node):
        seen.append((node.id, node.name, node.type, list(node.data_deps), node.duration_micros,
                     [(a.name, a.bool_val) for a in node.attr]))
    et.close()
    assert about.version == "0.0.4"
    assert seen == [(5, "COMP_NODE", 4, [], 5, [("is_cpu_op", False)]), (6, "COMP_NODE", 4, [5], 5, [("is_cpu_op", False)])]
    t = orrery.open(tmp_path / "x.et")[0]
    assert [n.id for n in t] == [5, 6]


def test_a_read_node_can_be_changed_and_written(tmp_path):
    with open(tmp_path / "x.et", "wb") as et:
        encode_message(et, GlobalMetadata())
        encode_message(et, of_all_kinds(1))
    et, node = open_file_rd(tmp_path / "x.et"), Node()
    decode_message(et, GlobalMetadata())
    decode_message(et, node)
    node.id = 9
    node.attr[0].double_val = 2.5
    del node.attr[1:]
    other = Node()
    other.CopyFrom(node)
    assert (other.id, other.name, [(a.name, a.double_val) for a in other.attr]) == (9, "METADATA_NODE", [("double", 2.5)])
    other.Clear()
    assert other == Node() and other.ByteSize() == 0


def test_fields_behave_like_those_of_protobuf():
    a = AttributeProto(name="x")
    assert a.WhichOneof("value") is None and a.int64_val == 0 and a.string_val == "" and a.bool_val is False
    a.int64_list.values.append(3)
    assert a.WhichOneof("value") == "int64_list" and a.int64_list.values == [3]
    a.int32_val = 5
    assert a.HasField("int32_val") and not a.HasField("int64_list") and a.int64_list.values == []
    with pytest.raises(AttributeError):
        a.nothing
    with pytest.raises(ValueError, match="no field 'nothing'"):
        Node(nothing=1)
    with pytest.raises(TypeError):
        AttributeProto(name="x", bool_list=[True])
    with pytest.raises(AttributeError):
        Node().nothing
    assert NodeType.Name(4) == "COMP_NODE" and NodeType.Value("COMM_COLL_NODE") == COMM_COLL_NODE == NodeType.COMM_COLL_NODE
    assert (ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER) == (0, 2, 6, 7)
    for name, number in orrery.NODE_TYPES.items():
        assert getattr(orrery.schema, name, number) == number
    for name, number in orrery.COLLECTIVES.items():
        assert getattr(orrery.schema, name) == number


def test_bad_records_and_files(tmp_path):
    with pytest.raises(orrery.Error):
        Node().ParseFromString(b"\xff\xff\xff")
    with pytest.raises(orrery.Error):
        GlobalMetadata().ParseFromString(b"\x12\x7f\x00")
    with pytest.raises(FileNotFoundError):
        open_file_rd(tmp_path / "none.et")
    assert not decode_message(io.BytesIO(b""), Node())
    with pytest.raises((OverflowError, TypeError)):
        Node(id=-1).SerializeToString()


SCRIPT = '''
from chakra.src.third_party.utils.protolib import encodeMessage as encode_message
from chakra.schema.protobuf.et_def_pb2 import Node as ChakraNode, BoolList, GlobalMetadata
from chakra.schema.protobuf.et_def_pb2 import AttributeProto as ChakraAttr, COMM_COLL_NODE, ALL_REDUCE
from chakra.et_def.et_def_pb2 import COMP_NODE
from chakra.third_party.utils.protolib import decodeMessage, openFileRd

for npu in range(4):
    with open(f"mine.{npu}.et", "wb") as et:
        encode_message(et, GlobalMetadata(version="0.0.4"))
        node = ChakraNode()
        node.id = 1
        node.name = "All-Reduce"
        node.type = COMM_COLL_NODE
        node.attr.append(ChakraAttr(name="is_cpu_op", bool_val=False))
        node.attr.append(ChakraAttr(name="comm_type", int64_val=ALL_REDUCE))
        node.attr.append(ChakraAttr(name="comm_size", int64_val=1_048_576))
        node.attr.append(ChakraAttr(name="involved_dim", bool_list=BoolList(values=[True])))
        encode_message(et, node)
'''


def test_a_script_runs_unchanged_with_the_drop_in(tmp_path):
    (tmp_path / "generate.py").write_text(SCRIPT)
    subprocess.run([sys.executable, "generate.py"], cwd=tmp_path, check=True)
    s = orrery.open(tmp_path / "mine")
    assert len(s) == 4 and orrery.check(s) and s[3][0].attrs["involved_dim"] == [True]
    assert orrery.run(s).time_ns > 0


@pytest.mark.parametrize("module, name", [
    ("chakra.et_generator.et_generator", "et_generator"), ("chakra.src.generator.generator", "chakra_generator"),
    ("chakra.et_converter.et_converter", "et_converter"), ("chakra.src.converter.converter", "chakra_converter"),
    ("chakra.src.trace_link.trace_link", "chakra_trace_link"), ("chakra.src.jsonizer.jsonizer", "chakra_jsonizer"),
    ("chakra.src.visualizer.visualizer", "chakra_visualizer"), ("chakra.et_visualizer.et_visualizer", "et_visualizer"),
    ("chakra.src.timeline_visualizer.timeline_visualizer", "chakra_timeline_visualizer")])
def test_modules_and_commands_of_chakra_are_the_old_programs(module, name, tmp_path):
    want = subprocess.run([name, "--help"], capture_output=True)
    assert want.returncode == 0
    got = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, cwd=tmp_path)
    assert (got.returncode, got.stdout, got.stderr) == (want.returncode, want.stdout, want.stderr)
    command = pathlib.Path(sys.executable).parent / name
    if name.startswith("chakra_"):
        got = subprocess.run([command, "--help"], capture_output=True, cwd=tmp_path)
        assert (got.returncode, got.stdout, got.stderr) == (want.returncode, want.stdout, want.stderr)


def test_what_the_drop_in_does_not_have_is_an_import_error():
    got = subprocess.run([sys.executable, "-c", "import chakra.nothing"], capture_output=True, text=True)
    assert got.returncode == 1 and "No module named 'chakra.nothing'" in got.stderr
