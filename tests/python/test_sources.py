# SPDX-License-Identifier: Apache-2.0
"""Traces from elsewhere: link, convert, sweep, orrery.torch and orrery.capture.

PyTorch is not needed: a stand-in module has what orrery.torch calls, and "records" a step that PyTorch recorded on an
H200 (tests/golden/data, h200).
"""

import gzip
import json
import os
import pathlib
import shutil
import sys
import types

import pytest

import orrery
import orrery.torch

GOLDEN = pathlib.Path(os.environ["ORR_GOLDEN"])
ROOT = pathlib.Path(os.environ["ORR_ROOT"])
HOST, DEVICE = GOLDEN / "h200/tiny_host_et.json.gz", GOLDEN / "h200/tiny_kineto.json.gz"


def test_link_makes_traces_and_a_timeline():
    s = orrery.link([HOST, DEVICE])
    rank = s.facts["ranks"][0]
    assert len(s) == 1 and rank["host_nodes"] > 0 and rank["linked"] > 0 and rank["placed"] > 0
    assert len(s.timeline) > 0 and set(s.timeline.column("kind")) & {"compute", "host"}
    assert orrery.run(s).time_ns > 0
    assert orrery.link([HOST, DEVICE], timeline=False).timeline is None


def test_link_of_a_whole_job(tmp_path):
    for path in (GOLDEN / "h200").glob("gloo4_*"):
        shutil.copy(path, tmp_path)
    s = orrery.link(tmp_path)
    assert len(s) == 4 and [r["rank"] for r in s.facts["ranks"]] == [0, 1, 2, 3]
    assert sum(r["collectives"] for r in s.facts["ranks"]) > 0
    assert orrery.run(s).rank_count == 4


def test_link_errors_have_a_place(tmp_path):
    (tmp_path / "bad.json").write_text('{"nodes": [')
    with pytest.raises(orrery.Error) as caught:
        orrery.link(tmp_path / "bad.json")
    assert "bad.json" in str(caught.value)
    with pytest.raises(orrery.Error, match="no paths"):
        orrery.link([])


def test_convert_equals_the_program(tmp_path):
    linked = GOLDEN / "chakra/convert/two_ops/linked.json"
    s = orrery.convert(linked, "pytorch", tmp_path / "x.orr")
    assert len(orrery.open(tmp_path / "x.orr")[0]) == len(s[0]) > 0
    s = orrery.convert(GOLDEN / "h200/fx_tp4_mlp.json", "fx", ranks=4)
    assert len(s) == 4 and s.node_count > 0
    s = orrery.convert(ROOT / "tests/capture/graphs/ddp.json.gz", "fx", hardware="h100")
    assert any(n.duration_us for n in s[0])
    s = orrery.convert(GOLDEN / "h200/mlp_export_model.json", "export", ranks=2)
    assert len(s) == 2


def test_convert_of_text(tmp_path):
    (tmp_path / "w.txt").write_text("DATA\n1\nconv -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 4096 5\n")
    s = orrery.convert(tmp_path / "w.txt", "text", ranks=4)
    assert len(s) == 4 and [n.comm_size for n in s[0] if n.collective] == [4096]
    (tmp_path / "w.txt").write_text("DATA\n1\nconv -1 ten NONE 0\n")
    with pytest.raises(orrery.Error) as caught:
        orrery.convert(tmp_path / "w.txt", "text", ranks=4)
    assert caught.value.line == 3
    with pytest.raises(orrery.Error, match="there are et, text"):
        orrery.convert(tmp_path / "w.txt", "nothing")


def test_fix_says_what_it_changed(tmp_path):
    t = orrery.Trace()
    t.compute("a", deps=[77])
    t.write(tmp_path / "a.et")
    changes = orrery.fix(tmp_path / "a.et", tmp_path / "b.et")
    assert changes.findings and orrery.check(tmp_path / "b.et") and not orrery.check(tmp_path / "a.et")


# ---- sweeps ----

SPEC = {"command": "stage, run", "options": {"model": "gpt2", "machine": "dgx-h100", "dp": "{8 // tp}", "batch": 8},
        "axes": {"tp": [1, 2, 4]}, "goal": "min simulated_ns"}


def test_a_sweep_gives_rows_and_the_best(tmp_path):
    told = []
    s = orrery.sweep(SPEC, tmp_path / "g.db", jobs=1, callback=told.append)
    assert told[-1]["done"] == told[-1]["points"] == len(s) == 3 and not told[-1]["failed"]
    rows = s.rows()
    assert [row["tp"] for row in rows] == [1, 2, 4]
    alone = orrery.run(orrery.stage("gpt2", tp=2, dp=4, batch=8, machine="dgx-h100"), machine="dgx-h100").time_ns
    assert rows[1]["simulated_ns"] == alone
    assert s.best(1)[0]["simulated_ns"] == min(row["simulated_ns"] for row in rows)
    assert list(s.frame("tp > 1")["tp"]) == [2, 4] and "3 of 3 points" in repr(s)
    again = orrery.sweep(SPEC, tmp_path / "g.db", jobs=1)  # nothing is left to do
    assert again.rows() == rows


def test_wrong_options_are_named():
    import numpy
    for value, kind in (("8", TypeError), (2.5, TypeError), (-1, OverflowError), (2**70, OverflowError)):
        with pytest.raises(kind, match="tp: expected a whole number"):
            orrery.stage("gpt2", tp=value)
    with pytest.raises(TypeError, match="machine: expected a text"):
        orrery.stage("gpt2", machine=5)
    s = orrery.stage("gpt2", tp=numpy.int64(2), dp=numpy.int32(2), batch=8)
    assert len(s) == 4 and len(s[1:3]) == 2 and len(s[numpy.int64(3)]) == len(s[-1])
    for rank in (4, -5):
        with pytest.raises(IndexError, match="no rank"):
            s[rank]
    with pytest.raises(TypeError):
        s["a"]
    with pytest.raises(orrery.Error, match="no traces"):
        orrery.run([])


def test_limits_end_a_sweep_with_what_is_known(tmp_path):
    for limit, words in (({"max_events": 20}, "the limit of 20 events is reached"),
                         ({"max_memory": 1024}, "the limit of 1.00 KiB of memory is reached")):
        with pytest.raises(orrery.Error, match=words) as caught:
            orrery.sweep(SPEC, tmp_path / "g.db", jobs=1, **limit)
        assert caught.value.code == "stopped" and not str(caught.value).startswith("orrery")
        assert caught.value.result.status["failed"] == len(caught.value.result) == caught.value.result.status["points"]
    with pytest.raises(orrery.Error, match="the limit of 1e-06 s is reached") as caught:
        orrery.sweep(SPEC, tmp_path / "late.db", jobs=1, max_seconds=1e-6)
    assert caught.value.code == "stopped"
    # What a limit ended is computed by the next call.
    s = orrery.sweep(SPEC, tmp_path / "g.db", jobs=1, max_seconds=1e300, max_memory="1TiB", max_events=2**62)
    assert s.status["done"] == len(s) and s.status["failed"] == 0
    for wrong in ({"max_seconds": -1}, {"max_seconds": float("nan")}, {"max_events": -1}, {"max_events": 2**64},
                  {"max_memory": "much"}, {"max_memory": -1}):
        with pytest.raises((orrery.Error, OverflowError)):
            orrery.sweep(SPEC, tmp_path / "wrong.db", jobs=1, **wrong)


def test_wrong_sweeps_raise(tmp_path):
    with pytest.raises(orrery.Error) as caught:
        orrery.sweep(tmp_path / "none.yaml")
    assert caught.value.path == str(tmp_path / "none.yaml") and caught.value.code == "io"
    (tmp_path / "bad.yaml").write_text("command: run\nnonsense: 5\n")
    with pytest.raises(orrery.Error) as caught:
        orrery.sweep(tmp_path / "bad.yaml")
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "bad.yaml"), 2)
    with pytest.raises(orrery.Error, match="stagee"):
        orrery.sweep({"command": "stagee"}, tmp_path / "g.db")
    with pytest.raises(orrery.Error, match="database"):
        orrery.sweep(SPEC)
    with pytest.raises(orrery.Error):
        orrery.Sweep(tmp_path / "none.db").rows()


# ---- PyTorch, stood in for ----

class Observer:
    """torch.profiler.ExecutionTraceObserver: writes what the real one wrote."""

    calls = []

    def register_callback(self, path):
        self.path = path
        self.calls.append("register")

    def start(self):
        self.calls.append("start")

    def stop(self):
        self.calls.append("stop")

    def unregister_callback(self):
        self.calls.append("unregister")
        pathlib.Path(self.path).write_bytes(gzip.decompress(HOST.read_bytes()))


class Profiler:
    def __init__(self, activities, record_shapes):
        assert activities == ["cpu", "cuda"] and record_shapes

    def __enter__(self):
        Observer.calls.append("profile")
        return self

    def __exit__(self, *_):
        Observer.calls.append("profiled")

    def step(self):
        Observer.calls.append("step")

    def export_chrome_trace(self, path):
        pathlib.Path(path).write_bytes(gzip.decompress(DEVICE.read_bytes()))


@pytest.fixture
def torch(monkeypatch):
    made = types.ModuleType("torch")
    made.__version__ = "2.9.0"
    made.profiler = types.SimpleNamespace(
        ExecutionTraceObserver=Observer, profile=Profiler, ProfilerActivity=types.SimpleNamespace(CPU="cpu", CUDA="cuda"))
    made.cuda = types.SimpleNamespace(is_available=lambda: True, synchronize=lambda: Observer.calls.append("wait"))
    made.ones = lambda *_, device: Observer.calls.append("ones")
    made.distributed = types.SimpleNamespace(is_available=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.delenv("RANK", raising=False)
    Observer.calls = []
    return made


def test_recording_links_what_was_recorded(torch, tmp_path):
    with orrery.torch.record(tmp_path / "t") as r:
        r.step()
    assert Observer.calls == ["profile", "ones", "profiled",  # the profiler's own start-up is not in the traces
                              "register", "start", "profile", "step", "wait", "profiled", "stop", "unregister"]
    assert (tmp_path / "t/host.0.json").exists() and (tmp_path / "t/device.0.json").exists()
    want = orrery.link([HOST, DEVICE])
    assert r.set.node_count == want.node_count and orrery.run(r.set).time_ns == orrery.run(want).time_ns
    with orrery.torch.record() as r:
        pass
    assert r.set.node_count == want.node_count


def test_recording_ends_cleanly_when_the_step_raises(torch, tmp_path):
    r = orrery.torch.record(tmp_path)
    with pytest.raises(ZeroDivisionError):
        with r:
            1 / 0
    assert r.set is None and Observer.calls[-2:] == ["stop", "unregister"] and not (tmp_path / "device.0.json").exists()


def test_rank_0_links_for_the_job(torch, tmp_path):
    barriers = []
    torch.distributed = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True,
                                              get_world_size=lambda: 2, get_rank=lambda: 1,
                                              barrier=lambda: barriers.append(1))
    with orrery.torch.record(tmp_path) as r:
        pass
    assert r.set is None and barriers == [1] and (tmp_path / "host.1.json").exists()


def test_without_pytorch_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(orrery.Error, match="PyTorch"):
        with orrery.torch.record(tmp_path):
            pass
    monkeypatch.delitem(sys.modules, "orrery_capture", raising=False)
    with pytest.raises(orrery.Error, match="PyTorch"):
        orrery.capture(lambda: None, world_size=2)
    monkeypatch.delitem(sys.modules, "orrery_capture", raising=False)


def test_capture_converts_what_the_module_captured(monkeypatch):
    document = json.loads(gzip.decompress((ROOT / "tests/capture/graphs/ddp.json.gz").read_bytes()))
    seen = []

    def fake(function, path, world_size, ranks, **options):
        function(0)
        seen.append((path, world_size, ranks, options))
        return document
    module = types.SimpleNamespace(capture=fake, CaptureError=KeyError)
    monkeypatch.setattr("orrery._capture._module", lambda: module)
    ran = []
    s = orrery.capture(lambda: ran.append("step"), world_size=document["world_size"], step=1)
    assert ran == ["step"] and len(s) == document["world_size"]
    assert seen == [(None, document["world_size"], "auto", {"step": 1, "real": False, "strict": False, "local_size": None})]
    orrery.capture(ran.append, world_size=2)
    assert ran[-1] == 0  # a function of one argument gets the rank

    def broken(*_, **__):
        raise KeyError("cannot")
    module.capture = broken
    with pytest.raises(orrery.Error, match="cannot"):
        orrery.capture(lambda: None, world_size=2)


def test_stage_takes_an_own_order_of_passes(tmp_path):
    order = tmp_path / "order.txt"
    order.write_text("0: F0 F1 B0 B1\n1: F0 B0 F1 B1\n")
    own = orrery.stage("gpt2", pp=2, batch=2, layers=2, order=order)
    assert [len(t) for t in own] == [len(t) for t in orrery.stage("gpt2", pp=2, batch=2, layers=2)]
    order.write_text("0: F0 F1 B0 B1\n1: F1 B1 F0 F0\n")
    with pytest.raises(orrery.Error, match="order.txt:2:13: F0.0 of rank 1 occurs twice"):
        orrery.stage("gpt2", pp=2, batch=2, layers=2, order=order)
    with pytest.raises(orrery.Error, match="zb-v needs at least 2 x pp 2"):
        orrery.stage("gpt2", pp=2, batch=2, pipeline="zb-v")
