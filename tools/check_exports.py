#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no function is shared without need, from the object files of a build:

    - each function a public header declares with ORR_API is defined, and called by cli, tests or examples;
    - the shared library exports those and nothing else;
    - each other function that is not static is called from another file, and is named after its module: fab_...,
      lgs_...; orr__... where it crosses folders."""

import json
import pathlib
import re
import subprocess
import sys

import tree

OUTSIDE = ("cli", "tests", "examples", "bench")


def symbols(*command):
    """(kind, name) of each symbol nm lists."""
    text = subprocess.run(["nm", "-P", *command], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        parts = line.split()
        if len(parts) >= 2 and len(parts[1]) == 1:
            yield parts[1], parts[0].split("@")[0]


def read_objects(build):
    """Per source file: the functions it defines and the names it uses from elsewhere."""
    sources = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["directory"], entry["file"]).resolve()
        target = build / entry["output"]
        if tree.ROOT in source.parents and target.is_file():
            sources[str(target)] = str(source.relative_to(tree.ROOT))
    defined, used = {}, {}
    # One nm for all objects: a thousand processes would take ten times as long.
    listed = subprocess.run(["nm", "-P", "-A", *sources], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        target, rest = line.split(": ", 1)
        symbol, kind = rest.split()[:2]
        symbol = symbol.split("@")[0]
        if kind in "UVWvw":
            used.setdefault(sources[target], set()).add(symbol)
        elif kind == "T":
            defined.setdefault(sources[target], set()).add(symbol)
    return defined, used


def declared_public():
    names = {}
    for path in tree.c_files("include"):
        for name in re.findall(r"\bORR_API\b[^;{]*?\b(orr_\w+)\s*\(", tree.code_only(tree.read(path))):
            names[name] = path
    return names


def users_of(name, used):
    return [source for source, names in used.items() if name in names]


def check_public(public, defined, used):
    library = {name for source, names in defined.items() if source.startswith("src/") for name in names}
    for name, header in sorted(public.items()):
        if name not in library:
            yield f"{header}: {name} is declared and not defined"
        elif not any(source.startswith(OUTSIDE) for source in users_of(name, used)):
            yield f"{header}: {name} is public, but no command, test or example calls it"


def check_internal(public, defined, used):
    for source, names in sorted(defined.items()):
        if not source.startswith(("src/", "cli/")):
            continue
        for name in sorted(names - public.keys()):
            if name.startswith("_Z") or name == "main":
                continue
            if source.startswith("src/") and not re.match(r"[a-z][a-z0-9]+_", name):
                yield f"{source}: {name} is not static and has no prefix of its module"
            if not any(user != source for user in users_of(name, used)):
                yield f"{source}: {name} is not called from another file: make it static or take it out"


def check_shared_library(build, public):
    for library in build.glob("liborrery.so.*.*"):
        if library.is_symlink() or not library.is_file():
            continue
        exported = {name for kind, name in symbols("-D", "--defined-only", str(library)) if kind == "T"}
        for name in sorted(exported - public.keys()):
            if not name.startswith(("_Z", "__")):
                yield f"{library.name} exports {name}, which no public header declares with ORR_API"


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tree.ROOT / "build").resolve()
    defined, used = read_objects(build)
    public = declared_public()
    tree.report([*check_public(public, defined, used), *check_internal(public, defined, used),
                 *check_shared_library(build, public)])


main()
