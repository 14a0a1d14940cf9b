# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends every long call soon, with KeyboardInterrupt; nothing is left half done, and Python goes on.

Calls that read are given a pipe that never says anything, so they cannot be over before the signal comes.
"""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

import orrery

GOLDEN = pathlib.Path(os.environ["ORR_GOLDEN"])


def interrupted(work, after=0.2, ready=lambda: True):
    """Sends the signal some time after the work is ready for it; it must end the work, not come after it."""
    def send():
        while not ready():
            time.sleep(0.01)
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)
    sender = threading.Thread(target=send)
    sender.start()
    ended = came = None
    try:
        try:
            work()
            ended = "the work was over before the signal came"
        except orrery.Error as e:
            ended = repr(e)
        time.sleep(60)
    except KeyboardInterrupt:
        came = True
    sender.join()
    assert ended is None and came, ended
    t = orrery.Trace()
    t.compute("still works", duration_us=5)
    assert orrery.run([t], progress=False).time_ns == pytest.approx(5000, abs=20)


@pytest.fixture
def silent(tmp_path):
    """A pipe that somebody has opened to write to, and does not."""
    path = tmp_path / "silent.et"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    yield path
    os.close(writer)


@pytest.fixture
def unopened(tmp_path):
    path = tmp_path / "unopened.et"
    os.mkfifo(path)
    return path


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """Traces that take a while to check and to write."""
    prefix = tmp_path_factory.mktemp("large") / "large"
    subprocess.run([sys.executable, "-m", "orrery", "gen", "layered", "--nodes", "400000", "-o", prefix], check=True,
                   stdout=subprocess.DEVNULL)
    return orrery.open(f"{prefix}.0.et")


def test_open(silent, unopened):
    interrupted(lambda: orrery.open(silent))
    interrupted(lambda: orrery.open(unopened))


def test_open_of_a_pipe_that_speaks(tmp_path):
    t = orrery.Trace()
    t.compute("work", duration_us=5)
    t.write(tmp_path / "a.et")
    os.mkfifo(tmp_path / "pipe.et")
    data = (tmp_path / "a.et").read_bytes()
    writer = threading.Thread(target=lambda: (time.sleep(0.2), (tmp_path / "pipe.et").write_bytes(data)))
    writer.start()
    assert orrery.open(tmp_path / "pipe.et")[0][0].name == "work"
    writer.join()


def test_link():
    files = sorted((GOLDEN / "h200").glob("gloo4_*"))

    def often():
        while True:
            orrery.link(files)
    interrupted(often)


@pytest.mark.parametrize("kind", ["et", "text", "flexflow", "simai", "pytorch", "fx", "export"])
def test_convert(silent, kind, tmp_path):
    interrupted(lambda: orrery.convert(silent, kind, tmp_path / "out.orr", ranks=4))
    assert not (tmp_path / "out.orr").exists()


def test_check_and_fix(silent, tmp_path, large):
    interrupted(lambda: orrery.fix(silent, tmp_path / "fixed.et"))
    assert not (tmp_path / "fixed.et").exists()

    def often():
        while True:
            orrery.check(large)
    interrupted(often)


def test_save_leaves_the_file_that_was_there(large, tmp_path):
    target = tmp_path / "out.et.gz"
    target.write_bytes(b"before")

    def often():
        while True:
            large[0].write(tmp_path / "out.et.gz.new.gz")
            (tmp_path / "out.et.gz.new.gz").unlink()
    interrupted(often)
    assert sorted(os.listdir(tmp_path)) == ["out.et.gz"] and target.read_bytes() == b"before"


def test_stage():
    def often():
        while True:
            orrery.stage("llama-3-70b", tp=8, pp=16, dp=64, batch=2048, steps=8)
    interrupted(often)


def test_run():
    s = orrery.stage("gpt2", tp=2, pp=2, dp=64, batch=512)
    interrupted(lambda: orrery.run(s, machine="dgx-h100", network=lambda *_: time.sleep(0.001) or 5, progress=False))

    def often():
        while True:
            orrery.run(s, machine="dgx-h100", network="packet", progress=False)
    interrupted(often)


def test_report(tmp_path):
    r = orrery.run(orrery.stage("gpt2", tp=2, pp=2, dp=2, batch=8), machine="dgx-h100", progress=False)

    def often():
        while True:
            r.report(tmp_path / "x.html")
            (tmp_path / "x.html").unlink()
            r.timeline, r.critical_path
    interrupted(often)
    assert all((tmp_path / name).read_text().rstrip().endswith("</html>") for name in os.listdir(tmp_path))


def test_plan():
    interrupted(lambda: orrery.plan("llama-3-70b", "dgx-h100:128", batch=1024, seq=8192, no_prune=True), 0.5)


def test_sweep(tmp_path):
    spec = {"command": "stage, run", "options": {"model": "gpt2", "machine": "dgx-h100", "dp": 8, "batch": 64},
            "axes": {"seq": {"from": 64, "to": 10000, "step": 1}}, "goal": "min simulated_ns"}
    interrupted(lambda: orrery.sweep(spec, tmp_path / "grid.db", jobs=2), ready=(tmp_path / "grid.db").exists)
    status = orrery.Sweep(tmp_path / "grid.db").status
    assert not status["is_running"] and status["done"] < status["points"]


def test_a_handler_that_does_not_raise_is_no_interrupt(tmp_path):
    seen = []
    old = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        t = orrery.Trace()
        t.compute("work", duration_us=5)
        t.write(tmp_path / "a.et")
        os.mkfifo(tmp_path / "pipe.et")

        def say():
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)
            (tmp_path / "pipe.et").write_bytes((tmp_path / "a.et").read_bytes())
        sayer = threading.Thread(target=say)
        sayer.start()
        assert len(orrery.open(tmp_path / "pipe.et")) == 1 and seen == [1]
        sayer.join()
    finally:
        signal.signal(signal.SIGINT, old)
