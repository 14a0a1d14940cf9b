# SPDX-License-Identifier: Apache-2.0
"""The n-th allocation, read, write, open, rename, link, mmap fails while the package works: an exception, never a crash, and
nothing is left in memory or on the disk.

The interpreter runs with fault_shim.c of tests/trust before it, in two ways.  Where every allocation is malloc's
(PYTHONMALLOC=malloc), the library's allocations and Python's own fail alike; Python 3.11 itself leaks there (list.extend), so
only the end is looked at.  Where Python has pools of its own, what malloc gave is the library's: each fault is tried three
times, and what the third leaves in memory that the second did not is a leak.  NumPy 1.24 crashes without memory (where), so
its arrays are left alone.  make test tries 40 places of each kind, make
check all."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

SHIM = pathlib.Path(os.environ.get("ORR_BUILD", "build")).resolve() / "tests" / "trust" / "libfault_shim.so"
PLACES = 1_000_000 if os.environ.get("ORR_MUCH") == "1" else 40
pytestmark = [pytest.mark.skipif(not SHIM.exists(), reason="tests were not built"),
              pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer has a malloc of its own")]

# Each is a function body; it may use what `before` made.
WORK = {
    "build and write": """
        t = orrery.Trace(attrs={"a": 1, "b": [1, 2], "c": "x"})
        a = t.compute("work", duration_us=5)
        t.collective("ALL_REDUCE", 1 << 20, deps=[a], group=3)
        t.write("out.et")
        """,
    "open and read": """
        s = orrery.open("step.0.et", threads=1)
        t = s[0]
        t.columns["id"], t[0].name, t[0].attrs, t[1].attrs, len(list(t))
        s.close()
        """,
    "save": """orrery.open("step.orr", threads=1).save("out.orr")""",
    "check": """list(orrery.check(orrery.open("step.orr", threads=1)))""",
    "run": """
        r = orrery.run(orrery.open("step.orr", threads=1), machine="dgx-h100", progress=False)
        r.time_ns, r.summary["per_rank"], len(r.timeline), r.critical_path.total_ns
        """,
    "limited": """
        try:
            orrery.run(orrery.open("step.orr", threads=1), machine="dgx-h100", progress=False, max_events=20)
        except orrery.Error as e:
            if e.result is None:
                raise
            e.result.summary["status"]
        """,
    "write results": """
        r = orrery.run(orrery.open("step.orr", threads=1), progress=False)
        r.write("csv", "out.csv")
        r.timeline.write_chrome("out.json")
        """,
    "custom network": """orrery.run(orrery.open("step.orr", threads=1), network=lambda *_: 5, progress=False).time_ns""",
    "stage": """orrery.stage("gpt2", layers=1, batch=1).node_count""",
    "plan": """
        plans = orrery.plan("gpt2", "dgx-h100:1", devices=2, batch=2, seq=64, layers=1, threads=1, progress=False,
                            fix={"micro_batch": 1, "zero": 0, "recompute": "none", "pp": 1})
        plans[0].words, plans[0].stage().node_count
        """,
    "sweep": """
        s = orrery.sweep(SPEC, "out.db", jobs=1)
        s.status["done"], len(s.rows()), s.best(1)
        """,
    "sweep table": """
        s = orrery.Sweep("grid.db")
        s.status["done"], s.rows("tp <= 2", sort="-simulated_ns"), s.best(1)
        """,
    "convert": """orrery.convert("text.txt", kind="text", ranks=2).node_count""",
    "link": """orrery.link(["host.json", "device.json"]).facts["ranks"]""",
    "broken": """
        try:
            orrery.open("bad.et", threads=1)
        except orrery.Error as e:
            assert str(e)
        """,
}
KINDS = ["malloc", "read", "write", "open", "rename", "link", "mmap"]

CHILD = """
import array, ctypes, faulthandler, gc, glob, os, sys
faulthandler.enable()
import orrery
shim = ctypes.PyDLL(None)
shim.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long]
shim.fault_arm.restype = None
shim.fault_disarm.restype = shim.fault_live.restype = ctypes.c_long
arm, disarm, live = shim.fault_arm, shim.fault_disarm, shim.fault_live
fine = (MemoryError, OSError, orrery.Error)
{before}

def work():
{body}

def count(kind):
    arm(kind, 0)
    try:
        work()
    finally:
        calls = disarm()
    return calls

def once(kind, n):
    "What is still allocated afterwards, and what was raised."
    arm(kind, n)
    try:
        work()
        said = None
    except (RuntimeError, SystemError) as e:  # of the interpreter itself
        if str(e) not in ("can't allocate read lock", "error return without exception set"):
            raise
        said = MemoryError
    except fine as e:
        said = e.__class__
        if not issubclass(said, MemoryError) and not str(e):
            disarm()
            raise RuntimeError("an error without words")
        e = None
    finally:
        disarm()
    for name in glob.glob("out*") + glob.glob(".orrery-*"):
        if said and said is not MemoryError and name.startswith(".orrery-"):
            raise RuntimeError("left behind: " + name)
        os.unlink(name)
    gc.collect()
    return live()

for _ in range(3):
    work()
    gc.collect()
failed, left = 0, array.array("q", [0] * 10)
for kind in {kinds!r}:
    total = count(kind.encode())
    places = range(1, total + 1) if total <= {places} else sorted(set(1 + i * (total - 1) // ({places} - 1) for i in range({places})))
    for n in places:
        try:
            for i in range(10):
                left[i] = once(kind.encode(), n)
                if i == (2 if {leaks} else 0) and (not {leaks} or left[2] <= left[1]):
                    break
            else:  # a cache that grows now and then is no leak: seven more told
                if {leaks} and left[9] - left[2] >= 7:
                    raise RuntimeError("leaks: %s" % left)
        except Exception as e:
            disarm()
            failed += 1
            print(kind, n, "of", total, repr(e)[:300], file=sys.stderr, flush=True)
            if failed > 5:
                sys.exit(1)
    print(kind, len(places), "of", total, flush=True)
work()
sys.exit(1 if failed else 0)
"""
BEFORE = """
t = orrery.Trace()
a = t.compute("work", duration_us=5)
t.collective("ALL_REDUCE", 1 << 20, deps=[a])
orrery.Set([t] * 2).save("step.orr")
t.write("step.0.et")
open("bad.et", "wb").write(b"\\x05\\xff\\xff")
SPEC = {"command": "stage, run", "options": {"model": "gpt2", "layers": 1, "batch": 2, "machine": "dgx-h100"},
        "axes": {"tp": [1, 2]}, "goal": "min simulated_ns"}
open("text.txt", "w").write("DATA\\n1\\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\\n")
"""


def before_of(name):
    return BEFORE + ('orrery.sweep(SPEC, "grid.db", jobs=1)\n' if name == "sweep table" else "")


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("whose", ["everybody's", "the library's"])
def test_a_fault_is_an_exception(name, whose, tmp_path):
    if name == "link":
        subprocess.run([sys.executable, pathlib.Path(os.environ["ORR_ROOT"]) / "tests" / "golden" / "torch_inputs.py", "plain", "."],
                       cwd=tmp_path, check=True)
    # A sweep is another process, which has a test of its own (tests/trust/test_faults): a few places of each kind are enough.
    places = min(PLACES, 8) if name == "sweep" else PLACES
    body = textwrap.indent(textwrap.dedent(WORK[name]).strip(), "    ")
    script = CHILD.format(before=before_of(name), body=body, kinds=KINDS, places=places, leaks=whose == "the library's")
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, errors="replace",
                         env={**os.environ, "LD_PRELOAD": str(SHIM), "OMP_NUM_THREADS": "1",
                              **({"PYTHONMALLOC": "malloc"} if whose == "everybody's" else {})})
    assert ran.returncode == 0, f"status {ran.returncode}\n{ran.stdout}\n{ran.stderr[-3000:]}"
    assert "malloc" in ran.stdout
