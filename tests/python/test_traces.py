# SPDX-License-Identifier: Apache-2.0
"""orrery.open, Trace, Node, columns, frames, sets, errors."""

import gc
import os
import pathlib
import pickle
import subprocess

import numpy
import pytest

import orrery

GOLDEN = pathlib.Path(os.environ["ORR_GOLDEN"])


def small():
    """Three nodes: 0 computes, 1 reduces what 0 made, 2 is kept by 1."""
    t = orrery.Trace(attrs={"made_by": "a test"})
    a = t.compute("gemm", num_ops=1000, tensor_size=64, duration_us=7)
    b = t.collective("all-reduce", 1 << 20, deps=[a], group=3)
    t.add("last", "COMP_NODE", ctrl_deps=[b], duration_us=2, attrs={"list": [1, 2, 3], "words": ["a", "b"], "x": 0.5})
    return t


def test_builder_gives_back_what_was_put_in():
    t = small()
    assert len(t) == 3 and not t.is_open
    first, second, last = t
    assert (first.id, first.name, first.type_name, first.num_ops, first.tensor_size) == (0, "gemm", "COMP_NODE", 1000, 64)
    assert first.duration_us == 7 and first.comm_size is None and first.data_deps == ()
    assert (second.collective, second.comm_size, second.pg_name, second.data_deps) == ("ALL_REDUCE", 1 << 20, "3", (0,))
    assert last.ctrl_deps == (1,) and last.attrs == {"list": [1, 2, 3], "words": ["a", "b"], "x": 0.5}
    assert last.get("x") == 0.5 and last.get("none", 4) == 4
    assert t.metadata == {"made_by": "a test"} and t.version == "0.0.4"


def test_written_and_read_back_it_is_the_same(tmp_path):
    t = small()
    t.write(tmp_path / "a.et")
    with orrery.open(tmp_path / "a.et") as s:
        back = s[0]
    assert [n.attrs for n in back] == [n.attrs for n in t]
    assert [n.name for n in back] == t.names()
    assert back.path == str(tmp_path / "a.et") and back[1].place[0] == back.path
    assert back.find(2).name == "last"
    with pytest.raises(KeyError):
        back.find(77)


def test_a_sealed_trace_takes_no_more_nodes():
    t = small()
    len(t)
    with pytest.raises(orrery.Error, match="complete"):
        t.compute("more")


def test_columns_lie_in_the_library_and_outlive_the_set(tmp_path):
    small().write(tmp_path / "a.et")
    s = orrery.open(tmp_path / "a.et")
    trace = s[0]
    sizes = trace.columns["comm_size"]
    assert isinstance(sizes, numpy.ndarray) and not sizes.flags.writeable and not sizes.flags.owndata
    assert sizes.tolist() == [orrery.NO_VALUE, 1 << 20, orrery.NO_VALUE]
    again = trace.columns["comm_size"]
    assert again.__array_interface__["data"] == sizes.__array_interface__["data"]  # no copy
    s.close()
    del s, trace
    gc.collect()
    assert sizes[1] == 1 << 20
    assert again.sum() is not None


def test_a_column_that_no_node_has_is_one_value_for_all():
    column = small().columns["comm_src"]
    assert column.strides == (0,) and column.tolist() == [orrery.NO_VALUE] * 3


def test_dependencies_are_a_sparse_matrix():
    c = small().columns
    assert c["data_first"].tolist() == [0, 0, 1, 1] and c["data_dep"].tolist() == [0]
    assert c["ctrl_first"].tolist() == [0, 0, 0, 1] and c["ctrl_dep"].tolist() == [1]
    assert set(c) >= {"id", "type", "comm_size", "data_dep"} and len(c) == len(list(c))


def test_rows_are_the_same_as_nodes():
    t = small()
    assert list(t.rows("id", "name", "comm_size", "data_deps", "pg_name")) == \
        [(n.id, n.name, n.comm_size, n.data_deps, n.pg_name) for n in t]
    with pytest.raises(KeyError, match="no column 'nothing'"):
        t.rows("nothing")


def test_pandas_has_missing_values():
    frame = small().frame()
    assert frame["name"].tolist() == ["gemm", "all-reduce", "last"]
    assert frame["comm_size"].isna().tolist() == [True, False, True]
    assert frame["type"].tolist() == ["COMP_NODE", "COMM_COLL_NODE", "COMP_NODE"]
    assert "comm_src" not in frame and "comm_src" in small().frame(columns=["comm_src"])


def test_negative_indices_and_slices():
    t = small()
    assert t[-1].name == "last" and [n.id for n in t[1:]] == [1, 2]
    with pytest.raises(IndexError):
        t[3]


def test_nodes_compare_by_place():
    t = small()
    assert t[0] == t[0] and t[0] != t[1] and len({t[0], t[0], t[1]}) == 2


def test_values_choose_the_member_of_the_schema(tmp_path):
    t = orrery.Trace()
    t.add("n", 4, attrs={"a": orrery.Value("uint32_val", 5, doc="why"), "comm_src": 3, "tensor_size": 9, "f": True})
    kinds = {name: (kind, doc) for name, kind, _, _, doc in t[0]._records}
    member = {number: name for name, (number, is_list) in orrery._core.MEMBERS.items() if not is_list}
    assert {name: member[kind] for name, (kind, _) in kinds.items()} == \
        {"a": "uint32_val", "comm_src": "int32_val", "tensor_size": "uint64_val", "f": "bool_val"}
    assert kinds["a"][1] == "why"
    with pytest.raises(orrery.Error, match="no member 'int_val'"):
        orrery.Value("int_val", 5)


def test_wrong_arguments_raise_and_leave_the_trace_usable():
    t = orrery.Trace()
    for bad in ({"x": object()}, {"x": [1, "a"]}):
        with pytest.raises(TypeError):
            t.add("n", 4, attrs=bad)
    with pytest.raises(TypeError):
        t.add("n", 4, deps=["a"])
    with pytest.raises(OverflowError):
        t.add("n", 4, deps=[-1])
    with pytest.raises(orrery.Error, match="no node type 'NOTHING'"):
        t.add("n", "NOTHING")
    with pytest.raises(orrery.Error, match="no collective 'all-nothing'"):
        t.collective("all-nothing", 1)
    t.add("n", 4)
    assert len(t) == 1


def test_ids_are_any_64_bits():
    t = orrery.Trace()
    t.add("big", 4, id=(1 << 64) - 1)
    assert t[0].id == (1 << 64) - 1 and t.columns["id"][0] == (1 << 64) - 1


def test_a_set_of_made_traces(tmp_path):
    traces = []
    for rank in range(4):
        t = orrery.Trace()
        t.collective("ALL_REDUCE", 1 << 20, group=1 + rank // 2)
        traces.append(t)
    s = orrery.Set(traces, groups={1: [0, 1], 2: [2, 3]})
    assert len(s) == 4 and s.groups == {1: (0, 1), 2: (2, 3)} and s.node_count == 4
    assert [t[0].pg_name for t in s] == ["1", "1", "2", "2"]
    assert traces[0][0].pg_name == "1"  # the set has copies
    s.save(tmp_path / "s.orr")
    s.save(tmp_path / "p")
    assert (tmp_path / "p.3.et").exists() and (tmp_path / "p.json").exists()
    for path in ("s.orr", "p"):
        back = orrery.open(tmp_path / path)
        assert back.groups == s.groups and [t[0].pg_name for t in back] == ["1", "1", "2", "2"]
    assert [(rank, node.comm_size) for rank, node in s.nodes()] == [(r, 1 << 20) for r in range(4)]
    assert s.frame()["rank"].tolist() == [0, 1, 2, 3]


def test_ids_of_shared_traces_are_each_ranks_own(tmp_path):
    for rank in range(3):
        t = orrery.Trace()
        a = t.add("a", 4, id=10 * rank + 1, duration_us=1)
        t.add("b", 4, id=10 * rank + 2, deps=[a], duration_us=1)
        t.write(tmp_path / f"x.{rank}.et")
    s = orrery.open(tmp_path / "x")
    assert s.distinct == 1
    assert [n.id for n in s[2]] == [21, 22] and s[2][1].data_deps == (21,) and s[2].find(22).name == "b"
    assert s[2].columns["id"].tolist() == [21, 22]


def test_check_finds_what_is_wrong():
    good, bad = orrery.Trace(), orrery.Trace()
    good.collective("ALL_REDUCE", 8)
    bad.collective("ALL_REDUCE", 8, deps=[99])
    report = orrery.check(orrery.Set([good, bad]))
    assert not report and report.errors >= 1 and report.counts["missing-parent"] == 1
    finding = next(f for f in report if f.kind == "missing-parent")
    assert finding.rank == 1 and finding.node == 0 and finding.severity == "error"
    assert orrery.check(orrery.Set([good, good]))


def test_errors_have_file_and_place(tmp_path):
    path = tmp_path / "bad.et"
    good = tmp_path / "good.et"
    small().write(good)
    path.write_bytes(good.read_bytes()[:-3])
    with pytest.raises(orrery.Error) as caught:
        orrery.open(path)
    e = caught.value
    assert e.code == "input" and e.path == str(path) and e.byte is not None and str(path) in str(e)
    assert str(pickle.loads(pickle.dumps(e))) == str(e)
    with pytest.raises(orrery.Error) as caught:
        orrery.open(tmp_path / "none")
    assert caught.value.code == "io" and caught.value.byte is None
    with pytest.raises(orrery.Error, match="closed"):
        s = orrery.open(good)
        s.close()
        len(s)


def test_keep_going_gives_the_ranks_that_can_be_read(tmp_path):
    small().write(tmp_path / "p.0.et")
    (tmp_path / "p.1.et").write_bytes(b"\xff\xff\xff")
    s = orrery.open(tmp_path / "p", keep_going=True)
    assert len(s) == 2 and len(s[0]) == 3 and list(s.unreadable) == [1]
    with pytest.raises(orrery.Error, match="p.1.et"):
        s[1]


@pytest.mark.parametrize("path", sorted((pathlib.Path(os.environ["ORR_ROOT"]) / "tests/broken").rglob("*.et"))[:60])
def test_no_broken_file_ends_the_interpreter(path):
    try:
        for trace in orrery.open(path):
            for node in trace:
                node.attrs, node.inputs, node.data_deps, repr(node)
            for name in trace.columns:
                trace.columns[name]
    except orrery.Error as e:
        assert e.path


def test_objects_cannot_be_made_empty():
    for cls in (orrery.Node, orrery._core.Column, orrery._core.Walk):
        with pytest.raises(TypeError):
            cls()
    for make in (orrery._core.Trace, orrery._core.Timeline):
        with pytest.raises(orrery.Error):
            len(make())
    with pytest.raises(orrery.Error):
        orrery._core.Run()._figures()


def test_the_program_is_in_the_package():
    import sys
    out = subprocess.run([sys.executable, "-m", "orrery", "--version"], capture_output=True, text=True, check=True).stdout
    assert orrery.__version__ in out
