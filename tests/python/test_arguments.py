# SPDX-License-Identifier: Apache-2.0
"""Whatever is passed in, an exception comes out: no function of the package or of its compiled part ends the interpreter.

Calls are made of odd values, from seeds.  What is allowed to come back is listed; SystemError is not, as it says that the
extension broke a rule of Python's.
"""

import inspect
import os
import random

import pytest

import orrery
from orrery import _core

ALLOWED = (orrery.Error, TypeError, ValueError, KeyError, IndexError, OverflowError, AttributeError, MemoryError, OSError,
           UnicodeError, ZeroDivisionError, ImportError, StopIteration)


class Odd:
    def __index__(self):
        raise ValueError("no number")

    def __fspath__(self):
        return 5

    def __iter__(self):
        raise KeyError("no items")


def values(tmp_path):
    t = orrery.Trace()
    a = t.compute("work", duration_us=5)
    t.collective("ALL_REDUCE", 8, deps=[a])
    s = orrery.Set([t, t])
    closed = orrery.Set([t])
    closed.close()
    t.write(tmp_path / "a.et")
    (tmp_path / "cut.et").write_bytes((tmp_path / "a.et").read_bytes()[:-3])
    return [None, True, 0, 1, -1, 7, 2**31, 2**32, 2**63, 2**64, -2**63, 2**200, 0.0, -1.5, float("nan"), float("inf"), "", "x",
            "gpt2", "dgx-h100", "a\0b", "\ud800", "é", "x" * 5000, b"", b"x", b"a\0b", b"\xff", (), (1,), (1, 2, 3), [], [1], ["x"],
            [None], [b"x"], {}, {"tp": 1}, {"x": None}, {1: 2}, {"machine": b"dgx-h100"}, {"set": s}, {"batch": -1}, {"dims": [2, 2]},
            object(), Odd(), Odd, orrery.Trace, orrery.Set, orrery.Result, orrery.Timeline, t, s, closed, s[0], t[0],
            t.columns, orrery.Trace(), lambda *_: None, print, str(tmp_path / "a.et"), str(tmp_path / "cut.et"), str(tmp_path / "none"),
            str(tmp_path), tmp_path / "a.et", os.fsencode(tmp_path / "a.et"), orrery.Error("x"), range(3), iter([1])]


def functions(thing, owner):
    for name in dir(thing):
        if name.startswith("__") and name not in ("__init__", "__getitem__", "__eq__", "__len__", "__iter__", "__repr__"):
            continue
        try:
            found = getattr(thing, name)
        except ALLOWED:
            continue
        if callable(found) and not inspect.isclass(found):
            yield f"{owner}.{name}", found


# They run for long by design; _with changes whatever object it is given.
LEFT_OUT = {"orrery.plan", "orrery.sweep", "orrery.capture"}


def attempt(rng, name, function, pool):
    count = rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 10))
    arguments = [rng.choice(pool) for _ in range(count)]
    words = {}
    if rng.random() < 0.3:
        try:
            names = [p.name for p in inspect.signature(function).parameters.values()
                     if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
        except (TypeError, ValueError):
            names = ["x"]
        words = {rng.choice(names or ["x"]): rng.choice(pool) for _ in range(2)}
    try:
        out = function(*arguments, **words)
        repr(out)
    except ALLOWED:
        pass
    except Exception as e:  # named, so that the failing call can be seen
        raise AssertionError(f"{name}{tuple(arguments)!r} {words!r}: {e!r}") from e


@pytest.mark.parametrize("seed", range(4))
def test_odd_arguments_raise(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # "x" may be a file that is written
    rng = random.Random(seed)
    pool = values(tmp_path)
    t = orrery.open(tmp_path / "a.et")[0]
    r = orrery.run(orrery.Set([t]), progress=False)
    things = [(_core, "_core"), (orrery, "orrery"), (t, "Trace"), (t[0], "Node"), (orrery.open(tmp_path / "a.et"), "Set"),
              (r, "Result"), (r.timeline, "Timeline"), (t._column("id"), "Column"), (t.columns, "Columns"),
              (t.rows("id"), "rows"), (orrery.Trace(), "new Trace"), (orrery.Set([t]), "new Set")]
    targets = [(name, function) for thing, owner in things for name, function in functions(thing, owner)
               if name not in LEFT_OUT and not name.endswith((".run", "._with")) and name not in ("_core.plan", "new Set.close")]
    assert len(targets) > 60
    for _ in range(1500):
        name, function = rng.choice(targets)
        attempt(rng, name, function, pool)
    assert orrery.run(orrery.Set([t]), progress=False).time_ns == r.time_ns


@pytest.mark.parametrize("seed", range(2))
def test_odd_options_of_a_run_raise(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(seed)
    pool = [v for v in values(tmp_path) if not callable(v)]
    names = [p.name for p in inspect.signature(orrery.run).parameters.values() if p.kind == p.KEYWORD_ONLY]
    s = orrery.open(tmp_path / "a.et")
    for _ in range(150):
        words = {rng.choice(names): rng.choice(pool) for _ in range(2)}
        words.setdefault("progress", False)
        attempt(random.Random(0), "run", lambda *_, **__: orrery.run(s, **words), [1])
    options = {name: b"x" for name in ("machine", "system", "topology", "network")}
    for cls in (orrery.Result, orrery.Set, int, None, 5):
        for given in (options, {}, {"set": 5}, {"set": s, "own_collectives": [1]}, {"set": s, "own_collectives": [(b"x", 5, 5)]},
                      {"set": s, "algorithms": {"all_reduce": [5]}}, {"set": s, "algorithms": 5}, {"set": s, "own_network": 5}):
            with pytest.raises(ALLOWED):
                _core.run(cls, given, None)


def test_objects_that_were_not_made_properly():
    for cls in (_core.Trace, _core.Set, _core.Run, _core.Timeline, orrery.Trace, orrery.Set, orrery.Result, orrery.Timeline):
        made = cls.__new__(cls)
        for name, function in functions(made, cls.__name__):
            if name.endswith("._with"):
                continue
            for arguments in ((), ("x",), (1,), (cls, 0), (None, None)):
                try:
                    function(*arguments)
                except ALLOWED:
                    pass
    for cls in (_core.Node, _core.Column):
        with pytest.raises(TypeError):
            cls()


def test_numbers_are_not_cut():
    """2**32 + 2 is not 2, and the option that is wrong is the one that is named."""
    for name in ("tp", "pp", "dp", "cp", "ep", "zero", "chunks", "steps", "prefetch"):
        with pytest.raises(OverflowError, match=f"^{name}: expected at most 4294967295"):
            orrery.stage("gpt2", **{name: 2**32 + 2})
    t = orrery.Trace()
    t.compute("work", duration_us=5)
    for name in ("queues", "threads"):
        with pytest.raises(OverflowError, match=f"^{name}: expected at most 4294967295"):
            orrery.run([t], progress=False, **{name: 2**32 + 1})
        with pytest.raises(OverflowError, match=f"^{name}: expected a whole number, 0 or more"):
            orrery.run([t], progress=False, **{name: -1})
    with pytest.raises(OverflowError, match="^threads: "):
        orrery.plan("gpt2", "dgx-h100", batch=2, threads=2**32)
