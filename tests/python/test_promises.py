# SPDX-License-Identifier: Apache-2.0
"""What the package promises and no other file here tests: long traces, progress and display in notebooks, life without NumPy."""

import subprocess
import sys
import time
import types

import pytest

import orrery


def test_columns_and_rows_of_a_long_trace_agree(tmp_path):
    subprocess.run([sys.executable, "-m", "orrery", "gen", "layered", "--nodes", "100000", "-o", tmp_path / "m"], check=True,
                   stdout=subprocess.DEVNULL)
    trace = orrery.open(tmp_path / "m.0.et")[0]
    columns = dict(trace.columns)
    rows = trace.rows("id", "name", "type", "duration_us", "comm_size", "data_deps")
    assert len(columns["comm_size"]) == 100_000
    assert sum(row[0] for row in rows) == int(columns["id"].sum())  # how fast: bench/python_columns.py


def test_a_kept_row_stays_as_it_was():
    t = orrery.Trace()
    for i in range(5):
        t.compute(f"a name that repeats {i % 2}", duration_us=i)
    rows = list(t.rows("id", "name"))
    assert rows == [(i, f"a name that repeats {i % 2}") for i in range(5)] and len(set(map(id, rows))) == 5
    one = [(row, row[0]) for row in t.rows("id")]
    assert all(row == (number,) for row, number in one)
    assert t[0].name is t[2].name  # made once
    assert getattr(t[0], "".join(["na", "me"])) == t[0].name  # a name that is not interned


class Handle:
    def __init__(self, shown):
        self.shown = shown

    def update(self, text):
        self.shown.append(text)


@pytest.fixture
def notebook(monkeypatch):
    """An IPython with a kernel, as far as it is asked for."""
    shown = []

    def display(text, display_id):
        assert display_id
        shown.append(text)
        return Handle(shown)
    shell = types.ModuleType("IPython")
    shell.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    page = types.ModuleType("IPython.display")
    page.display = display
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    return shown


class Enough(Exception):
    """An endless run, as far as a test is concerned."""


def ends_at_third(notebook, monkeypatch):
    def update(self, text):
        notebook.append(text)
        if len(notebook) == 3:
            raise Enough
    monkeypatch.setattr(Handle, "update", update)


def test_progress_of_a_run_shows_in_a_notebook(notebook, monkeypatch):
    ends_at_third(notebook, monkeypatch)
    t = orrery.Trace()
    for _ in range(4000):
        t.collective("ALL_REDUCE", 1 << 30)
    with pytest.raises(Enough):
        orrery.run([t] * 64, network="unaware", fold="off", timeline=False)
    assert "of 64 ranks done" in notebook[0] and notebook[-1] == ""


def test_progress_of_a_plan_shows_in_a_notebook(notebook, monkeypatch):
    ends_at_third(notebook, monkeypatch)
    with pytest.raises(Enough):
        orrery.plan("llama-3-70b", "dgx-h100:128", batch=1024, seq=8192, no_prune=True)
    assert "searching:" in notebook[0] and notebook[-1] == ""


def test_progress_of_a_sweep_shows_in_a_notebook(notebook, monkeypatch, tmp_path):
    ends_at_third(notebook, monkeypatch)
    with pytest.raises(Enough):
        orrery.sweep({"command": "stage, run", "options": {"model": "gpt2", "machine": "dgx-h100", "dp": 8, "batch": 64},
                      "axes": {"seq": {"from": 64, "to": 100000, "step": 1}}}, tmp_path / "s.db", jobs=1)
    assert "points" in notebook[0] and notebook[-1] == ""


def test_what_there_is_shows_itself_in_a_notebook():
    s = orrery.stage("gpt2", tp=2, dp=2, batch=8)
    assert "<b>4 ranks</b>" in s._repr_html_() and "<table" in orrery.run(s, machine="dgx-h100", progress=False)._repr_html_()


def test_no_progress_where_nobody_looks(capfd):
    t = orrery.Trace()
    t.collective("ALL_REDUCE", 1 << 20)
    orrery.run([t] * 4, network=lambda *_: time.sleep(0.04) or 5)
    said = capfd.readouterr()
    assert said.out == "" and said.err == ""


BARE = """
import sys
for name in ("numpy", "pandas", "polars", "IPython"):
    sys.modules[name] = None
import orrery
s = orrery.stage("gpt2", tp=2, dp=2, batch=8)
t = s[0]
assert t.columns["comm_size"][0] == orrery.NO_VALUE and len(list(t.rows("id", "name"))) == len(t)
r = orrery.run(s, machine="dgx-h100", progress=False)
assert len(r.ranks["comm_ns"]) == 4 and r.timeline.column("end_ns") and r.critical_path.shares and repr(r)
for frame in (t.frame, lambda: t.frame("polars"), r.frame, r.timeline.frame):
    try:
        frame()
    except (ImportError, orrery.Error) as e:
        assert "NumPy" in str(e) or "numpy" in str(e) or "pandas" in str(e) or "polars" in str(e), e
    else:
        raise SystemExit("a frame without pandas")
print("fine")
"""


def test_without_numpy_pandas_and_polars():
    got = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True)
    assert got.stdout == "fine\n", got.stderr
