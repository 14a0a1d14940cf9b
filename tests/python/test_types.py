# SPDX-License-Identifier: Apache-2.0
"""Type hints: the package under mypy --strict, and the stub against the compiled module."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

import orrery

PACKAGE = pathlib.Path(orrery.__file__).parent
needs_mypy = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")


@needs_mypy
def test_the_package_is_typed(tmp_path):
    assert (PACKAGE / "py.typed").exists()
    got = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--python-version", "3.9", "--cache-dir",
                          str(tmp_path), str(PACKAGE)], capture_output=True, text=True, cwd=tmp_path)
    assert got.returncode == 0, got.stdout


@needs_mypy
def test_the_stub_has_what_the_module_has():
    """Names of the compiled module and of its classes, both ways."""
    import ast
    tree = ast.parse((PACKAGE / "_core.pyi").read_text())

    def names(body):
        for item in body:
            if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
                yield item.name
            elif isinstance(item, ast.AnnAssign):
                yield item.target.id
    own = {n for n in vars(orrery._core) if not n.startswith("__")}
    assert own == {n for n in names(tree.body) if not n.startswith("_T")}
    for item in tree.body:
        if isinstance(item, ast.ClassDef):
            real = set(vars(getattr(orrery._core, item.name)))
            stub = set(names(item.body))
            assert stub <= real, (item.name, stub - real)
            assert {n for n in real if not n.startswith("__")} <= stub, item.name


def test_everything_public_has_a_docstring():
    for name in orrery.__all__:
        thing = getattr(orrery, name)
        if callable(thing):
            assert thing.__doc__, name
        if isinstance(thing, type):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert value.__doc__, f"{name}.{member}"
