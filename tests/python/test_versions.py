# SPDX-License-Identifier: Apache-2.0
"""The one extension in every Python from 3.9 on that is here, without NumPy."""

import os
import pathlib
import pwd
import shutil
import subprocess

import pytest

import orrery

SCRIPT = """
import orrery
t = orrery.Trace()
a = t.compute("x", duration_us=5)
t.collective("ALL_REDUCE", 8, deps=[a], group=1)
s = orrery.Set([t, t], groups={1: [0, 1]})
column = t._column("comm_size")
assert [n.name for n in t] == ["x", "ALL_REDUCE"] and column.tolist() == [orrery.NO_VALUE, 8] and column[1] == 8
assert orrery.check(s) and orrery.run(s, progress=False, network=lambda *_: 5, compute=lambda n: 7).time_ns > 0
try:
    orrery.open("none")
except orrery.Error as e:
    print(e.code)
"""


def find(minor):
    """In PATH, or among those of pyenv, whose own links work for one version at a time."""
    home = pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir)
    kept = pathlib.Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions"
    for python in [shutil.which(f"python3.{minor}"), *sorted(kept.glob(f"3.{minor}.*/bin/python3"))]:
        if python and subprocess.run([python, "-c", "pass"], capture_output=True).returncode == 0:
            return python
    return None


def test_the_extension_keeps_to_the_limited_api():
    """What it asks of Python is in the oldest one that is here, and nothing private is but what the headers themselves use."""
    if not shutil.which("nm"):
        pytest.skip("no nm")

    def names(path, *options):
        out = subprocess.run(["nm", "-D", *options, path], capture_output=True, text=True, check=True).stdout
        return {line.split()[-1].split("@")[0] for line in out.splitlines() if line}
    wanted = {name for name in names(orrery._core.__file__, "--undefined-only") if name.startswith(("Py", "_Py"))}
    private = {name for name in wanted if name.startswith("_")}
    assert private <= {"_PyArg_ParseTuple_SizeT", "_PyObject_CallFunction_SizeT", "_PyObject_New", "_Py_BuildValue_SizeT",
                       "_Py_Dealloc", "_Py_FalseStruct", "_Py_NoneStruct", "_Py_NotImplementedStruct", "_Py_TrueStruct"}
    assert orrery._core.__file__.endswith("_core.abi3.so")
    oldest = next((python for python in map(find, range(9, 15)) if python), None)
    where = subprocess.run([oldest, "-c", "import sysconfig as s; print(s.get_config_var('LIBDIR'), s.get_config_var("
                            "'INSTSONAME'), s.get_config_var('Py_ENABLE_SHARED'))"], capture_output=True, text=True).stdout.split()
    library = pathlib.Path(where[0]) / where[1] if where[2] == "1" else pathlib.Path(oldest).resolve()
    there = names(library, "--defined-only")
    assert not wanted - there if there else True


@pytest.mark.parametrize("minor", range(9, 15))
def test_it_works_in(minor, tmp_path):
    python = find(minor)
    if not python:
        pytest.skip(f"no Python 3.{minor}")
    # The package alone: other packages beside it are for another version.
    (tmp_path / "orrery").symlink_to(pathlib.Path(orrery.__file__).parent)
    got = subprocess.run([python, "-c", SCRIPT], capture_output=True, text=True, cwd=tmp_path,
                         env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"})
    assert (got.returncode, got.stdout.strip()) == (0, "io"), got.stderr
