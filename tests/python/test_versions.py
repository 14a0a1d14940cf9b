# SPDX-License-Identifier: Apache-2.0
"""The one extension in every Python from 3.9 on that is here, without NumPy."""

import pathlib
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


@pytest.mark.parametrize("minor", range(9, 15))
def test_it_works_in(minor, tmp_path):
    python = shutil.which(f"python3.{minor}")
    if not python or subprocess.run([python, "-c", "pass"], capture_output=True).returncode:
        pytest.skip(f"no Python 3.{minor}")
    # The package alone: other packages beside it are for another version.
    (tmp_path / "orrery").symlink_to(pathlib.Path(orrery.__file__).parent)
    got = subprocess.run([python, "-c", SCRIPT], capture_output=True, text=True, cwd=tmp_path,
                         env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"})
    assert (got.returncode, got.stdout.strip()) == (0, "io"), got.stderr
