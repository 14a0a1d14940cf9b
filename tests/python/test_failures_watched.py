# SPDX-License-Identifier: Apache-2.0
"""test_failures under the sanitizers, which make check loads before the interpreter: the n-th read, write, open, rename, link, mmap
fails.  Allocations cannot: malloc is the sanitizer's own there; they fail in test_failures, with a build that has none."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

import test_failures
from test_failures import CHILD, SHIM, WORK, before_of

WATCHED = os.environ.get("LD_PRELOAD", "")
PLACES = 20
pytestmark = [pytest.mark.skipif(not SHIM.exists(), reason="tests were not built"),
              pytest.mark.skipif("libasan" not in WATCHED, reason="no sanitizer watches this interpreter")]


@pytest.mark.parametrize("name", [name for name in WORK if name not in ("link", "sweep")])
def test_a_fault_is_an_exception(name, tmp_path):
    body = textwrap.indent(textwrap.dedent(WORK[name]).strip(), "    ")
    script = CHILD.format(before=before_of(name), body=body, kinds=test_failures.KINDS[1:], places=PLACES, leaks=False)
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, errors="replace",
                         env={**os.environ, "LD_PRELOAD": f"{WATCHED} {SHIM}", "OMP_NUM_THREADS": "1"})
    assert ran.returncode == 0, f"status {ran.returncode}\n{ran.stdout}\n{ran.stderr[-3000:]}"
    assert name in ("stage", "plan") or re.search(r" [1-9]\d* of [1-9]", ran.stdout), ran.stdout  # something was there to fail
    assert "Sanitizer" not in ran.stderr and "runtime error" not in ran.stderr, ran.stderr[-3000:]
