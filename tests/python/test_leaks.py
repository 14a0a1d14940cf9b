# SPDX-License-Identifier: Apache-2.0
"""Nothing is left behind: memory after 100,000 openings is that after the first thousands."""

import gc
import os

import pytest

import orrery

PAGE = os.sysconf("SC_PAGE_SIZE")
# An interpreter that is watched keeps what is freed for a while.
watched = pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer keeps memory")


def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


def grown(work, warm, count):
    for _ in range(warm):
        work()
    before = resident()
    for _ in range(count):
        work()
    return resident() - before


@watched
def test_open_and_close(tmp_path):
    t = orrery.Trace(attrs={"a": 1})
    a = t.compute("work", duration_us=5)
    t.collective("ALL_REDUCE", 1 << 20, deps=[a], group=3)
    t.write(tmp_path / "a.et")
    path = str(tmp_path / "a.et")

    def work():
        s = orrery.open(path, threads=1)
        trace = s[0]
        trace[1].attrs, trace[0].name, trace.columns["id"]
        s.close()
    assert grown(work, 5_000, 95_000) < 1 << 20  # 10 bytes an opening would be 950 kB


@watched
def test_errors(tmp_path):
    (tmp_path / "bad.et").write_bytes(b"\x05\xff\xff")
    path = str(tmp_path / "bad.et")

    def work():
        with pytest.raises(orrery.Error):
            orrery.open(path, threads=1)
    assert grown(work, 1_000, 10_000) < 1 << 20


@watched
def test_building_and_messages():
    from orrery.schema import AttributeProto, Node

    def work():
        t = orrery.Trace()
        t.add("n", 4, attrs={"list": [1, 2], "text": "abc", "x": 1.5}, inputs=("a", "b", "c"))
        with pytest.raises(TypeError):
            t.add("n", 4, attrs={"list": [1, "2"]})
        orrery.Set([t, t], groups={1: [0, 1]})
        node = Node(id=1, attr=[AttributeProto(name="a", int64_val=1)])
        Node().ParseFromString(node.SerializeToString())
    assert grown(work, 1_000, 5_000) < 1 << 20


@watched
def test_runs_and_their_models():
    t = orrery.Trace()
    t.compute("work", duration_us=1)
    t.collective("ALL_REDUCE", 1 << 16)
    s = orrery.Set([t] * 2)

    def ring(kind, member, members, size, root):
        yield "send", 1 - member, size
        yield "receive", 1 - member, size

    def work():
        r = orrery.run(s, progress=False, network=lambda *_: 5, compute=lambda node: 7.0, collectives={"all-reduce": ring})
        r.timeline.column("name"), r.critical_path, r.ranks, r.dimensions
        with pytest.raises(ZeroDivisionError):
            orrery.run(s, progress=False, network=lambda *_: 1 // 0)
    assert grown(work, 300, 1_500) < 2 << 20
