#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes go one way only: base <- trace, models <- sources, check, run <- explain <- plan, views (which also show
results of sources, models and sweeps); cli sees the public headers and the support part of base (SUPPORT).  compat may
include everything, and nothing includes compat but its own table of rooms.  A public header belongs to the module that
defines its functions, so base cannot depend on upper modules through one.  Third-party libraries are included by base
only."""

import re

import tree

ALLOWED = {
    "base": {"base"},
    "trace": {"trace", "base"},
    "models": {"models", "base"},
    "sources": {"sources", "trace", "models", "base"},
    "check": {"check", "trace", "models", "base"},
    "run": {"run", "trace", "models", "base"},
    "explain": {"explain", "run", "trace", "models", "base"},
    "plan": {"plan", "explain", "run", "sources", "trace", "models", "base"},
    "sweep": {"sweep", "base"},
    "views": {"views", "explain", "plan", "sweep", "check", "sources", "models", "trace", "base"},
    "compat": {"compat", "base", "trace", "models", "sources", "check", "run", "explain", "plan", "sweep", "views"},
}
THIRD_PARTY = {"zlib.h", "zstd.h", "simdjson.h", "yaml.h", "sqlite3.h", "cgraph.h", "gvc.h", "mpi.h", "microhttpd.h"}
GENERATED = {"base/late_names.h"}  # by meson.build
# What cli may use of base: text, the JSON writer, and files that appear whole or not at all.
SUPPORT = {"src/base/text/text.h", "src/base/formats/json.h", "src/base/io/output.h"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def module_of(path):
    return path.parts[1] if path.parts[0] == "src" and len(path.parts) > 2 else None


def public_owners():
    """Public header -> the modules that define its functions (headers with only types belong to base)."""
    defined = {}
    for path in tree.c_files("src"):
        for name in re.findall(r"^[A-Za-z][^;{}()=#\n]*?\b(orr_\w+)\(", tree.code_only(tree.read(path)), re.M):
            if path.suffix != ".h":
                defined[name] = module_of(path)
    owners = {}
    for path in tree.c_files("include"):
        names = re.findall(r"\bORR_API\b[^;{]*?\b(orr_\w+)\s*\(", tree.code_only(tree.read(path)))
        owners["/".join(path.parts[1:])] = {defined[name] for name in names if name in defined} or {"base"}
    return owners


def resolve(path, name):
    """The file of this tree that a quoted include refers to, or None."""
    for folder in (path.parent, *map(tree.pathlib.PurePosixPath, ("src", "include", path.parts[0]))):
        found = (tree.ROOT / folder / name).resolve()
        if found.is_file() and tree.ROOT in found.parents:
            return tree.pathlib.PurePosixPath(found.relative_to(tree.ROOT))
    return None


# Read by every network: the links it runs on.  Files directly in network/ are what several models share.
SHARED = {("network",), ("network", "topology")}
# Folders of a model that are below its other folders: an engine knows neither its files nor its observers.
LOWER = {("network", "packet", "engine"): {("network", "packet", "files"), ("network", "packet", "watch")}}


def is_sideways(path, target):
    """Sources must not include each other; the same holds for models and for the folders of compat.  Folders inside a
    source are parts of it; a model is two folders deep (network/packet), and the table above it may include it."""
    own, other = path.parts[2:-1], target.parts[2:-1]
    module = module_of(path)
    if module != module_of(target) or path.name == "table.c":
        return False
    if module == "models":
        is_below = other[:len(own)] == own or other[:2] in SHARED
        return not is_below and own[:len(other[:2])] != other[:2] or other[:3] in LOWER.get(own[:3], ())
    if module == "sources":
        return bool(other) and own[:1] != other[:1]
    return module == "compat" and bool(other) and own[:len(other)] != other


def check_library(path, owners, quote, name):
    module = module_of(path)
    if name.startswith("orrery/"):
        reached = owners.get(name, set())
        if module in reached:
            return None  # its own parts; files above it share only the header
        if not reached <= ALLOWED[module]:
            return f"{module} may not include {name}, which belongs to {', '.join(sorted(reached))}"
        return None
    if quote == "<":
        if name in THIRD_PARTY and module != "base":
            return f"{name} is included by base only"
        return None
    if name in GENERATED and module == "base":
        return None
    target = resolve(path, name)
    if target is None:
        return f"{name} is not a file of the tree"
    if target.parts[0] != "src":
        return f"{name}: write public headers as <orrery/...>"
    if module_of(target) not in ALLOWED[module]:
        return f"{module} may not include {module_of(target)} ({name})"
    if is_sideways(path, target):
        return f"sideways: {name} belongs to a neighbour"
    return None


def check_outside(path, quote, name):
    """examples and public headers include only include/orrery from this tree; cli also some of base."""
    if quote == "<":
        return f"{name} is included by base only" if name in THIRD_PARTY else None
    target = resolve(path, name)
    if path.parts[0] == "cli" and target is not None and (target.parts[0] == "cli" or str(target) in SUPPORT):
        return None
    return f"{path.parts[0]} may include <orrery/...> only, not {name}"


def main():
    owners = public_owners()
    problems = []
    for path in tree.c_files("src", "cli", "examples", "include"):
        text = tree.code_only(tree.read(path), keep_strings=True)
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            module = module_of(path)
            if module is not None and module not in ALLOWED:
                wrong = f"no rule for the module {module}; add it to tools/check_includes.py"
            elif module is not None:
                wrong = check_library(path, owners, match.group(1), match.group(2))
            else:
                wrong = check_outside(path, match.group(1), match.group(2))
            if wrong:
                problems.append(f"{path}:{line}: {wrong}")
    tree.report(problems)


main()
