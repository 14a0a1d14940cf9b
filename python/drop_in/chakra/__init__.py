# SPDX-License-Identifier: Apache-2.0
"""The modules and commands of Chakra's package, by all names that they have had, run by Orrery.

Two kinds of modules: those that scripts import (the generated schema, protolib) are orrery.schema; those that people run
with `python -m` become the program of that name.  One table has them all; nothing else is here.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import CodeType, ModuleType
from typing import Optional

_SCHEMA = ("chakra.schema.protobuf.et_def_pb2", "chakra.et_def.et_def_pb2", "chakra.third_party.utils.protolib",
           "chakra.src.third_party.utils.protolib")
_PROGRAMS = {
    "chakra.et_generator.et_generator": "et_generator",
    "chakra.utils.et_generator.et_generator": "et_generator",
    "chakra.src.generator.generator": "chakra_generator",
    "chakra.generator.generator": "chakra_generator",
    "chakra.et_converter.et_converter": "et_converter",
    "chakra.src.converter.converter": "chakra_converter",
    "chakra.converter.converter": "chakra_converter",
    "chakra.et_visualizer.et_visualizer": "et_visualizer",
    "chakra.src.visualizer.visualizer": "chakra_visualizer",
    "chakra.visualizer.visualizer": "chakra_visualizer",
    "chakra.et_jsonizer.et_jsonizer": "chakra_jsonizer",
    "chakra.utils.et_jsonizer.et_jsonizer": "chakra_jsonizer",
    "chakra.src.jsonizer.jsonizer": "chakra_jsonizer",
    "chakra.jsonizer.jsonizer": "chakra_jsonizer",
    "chakra.trace_link.trace_link": "chakra_trace_link",
    "chakra.src.trace_link.trace_link": "chakra_trace_link",
    "chakra.timeline_visualizer.timeline_visualizer": "chakra_timeline_visualizer",
    "chakra.src.timeline_visualizer.timeline_visualizer": "chakra_timeline_visualizer",
}
_FOLDERS = {name.rsplit(".", depth)[0] for name in (*_SCHEMA, *_PROGRAMS) for depth in range(1, name.count("."))}


def _run(name: str) -> None:
    from orrery.__main__ import become
    become(name, sys.argv[1:])


class _Loader(importlib.abc.InspectLoader):
    """Makes a module of the table; runpy asks for its code."""

    def is_package(self, fullname: str) -> bool:
        return fullname in _FOLDERS

    def get_source(self, fullname: str) -> str:
        if fullname in _SCHEMA:
            return "from orrery.schema import *\nfrom orrery.schema import encodeMessage, decodeMessage, openFileRd\n"
        if fullname in _PROGRAMS:
            return f"import chakra\n\n\ndef main():\n    chakra._run({_PROGRAMS[fullname]!r})\n\n\n" \
                   "if __name__ == '__main__':\n    main()\n"
        return ""

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.get_source(fullname), f"<{fullname} of orrery>", "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: object = None,
                  target: Optional[ModuleType] = None) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname in _SCHEMA or fullname in _PROGRAMS or fullname in _FOLDERS:
            return importlib.util.spec_from_loader(fullname, _Loader())
        return None


sys.meta_path.append(_Finder())


# ---- console commands ----

def converter() -> None:
    _run("chakra_converter")


def generator() -> None:
    _run("chakra_generator")


def jsonizer() -> None:
    _run("chakra_jsonizer")


def timeline_visualizer() -> None:
    _run("chakra_timeline_visualizer")


def trace_link() -> None:
    _run("chakra_trace_link")


def visualizer() -> None:
    _run("chakra_visualizer")
