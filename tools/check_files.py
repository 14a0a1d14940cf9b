#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that file names are unique, so that the name in a backtrace is enough; source files begin with the licence
line; no absolute paths of a developer's machine occur; no file exceeds 1,500 lines; comments name existing files and
wrap where code does, at 100 columns, except for examples, tables and drawings, which are indented, and URLs; the README
of a folder, or of one above it, names each source file there, its folder or a pattern (`coll_plan*.c`)."""

import collections
import fnmatch
import re

import tree

SHARED_NAMES = {"README.md", "meson.build", "run", "__init__.py", "__main__.py"}
TEXT_SUFFIXES = {".c", ".h", ".cc", ".hpp", ".py", ".sh", ".md", ".in", ".build", ".js", ".css", ".html", ".txt", ""}
MACHINE_PATH = re.compile(r"(?<![\w$.}/])/(?:home|root|tmp|work|farm|Users|mnt|srv)/[\w.]+")
LICENCE = "SPDX-License-Identifier: Apache-2.0"
LINES_MAX = 1500
# Files that comments may name: those of other programs, of users, and generated ones.
OTHERS = {"scale.py", "main.py", "train.py", "net.py", "et_feeder.h", "enqueue.cc", "topo.h", "search.cc", "model.py"}
NAMED = re.compile(r"(?<![\w/<.*-])[a-z][a-z0-9_]+\.(?:c|h|cc|hpp)\b|(?<![\w/<.*-])[a-z][a-z0-9_]+\.py\b")
COLUMNS = 100
MAY_BE_WIDE = re.compile(r"\s*(?:/?\*|//) {5}|.*://")


def stale_names(path, known):
    """File names in comments that do not exist."""
    text = tree.read(path)
    for comment in tree.comments(text):
        for name in NAMED.finditer(comment.group(0)):
            if name.group(0) not in known:
                number = text.count("\n", 0, comment.start() + name.start()) + 1
                yield f"{path}:{number}: a comment names {name.group(0)}, which does not exist"


def wide_comments(path):
    text = tree.read(path)
    lines = text.split("\n")
    for comment in tree.comments(text):
        first, last = (text.count("\n", 0, at) for at in comment.span())
        for number in range(first, last + 1):
            if len(lines[number]) > COLUMNS and not MAY_BE_WIDE.match(lines[number]):
                yield f"{path}:{number + 1}: a comment of {len(lines[number])} columns; wrap it at {COLUMNS}"


def unlisted():
    """Source files that no README names.  A folder is named as `fold/`, a room of compat as `ns3`."""
    words = {path.parent: re.findall(r"`([^`\s]+)`", tree.read(path)) for path in tree.files() if path.name == "README.md"}
    for path in tree.files():
        if path.suffix not in (".c", ".cc") or path.parts[0] not in ("src", "cli"):
            continue
        readmes = [folder for folder in path.parents if folder in words and len(folder.parts)]
        below = [path.relative_to(folder) for folder in readmes]
        names = {str(part) for name in below for part in (name, *name.parents)}
        said = [re.sub(r"<\w+>", "*", word.rstrip("/")) for folder in readmes for word in words[folder] if re.search(r"\w", word)]
        if not any(fnmatch.fnmatch(name, word) for name in names | {path.name} for word in said):
            yield f"{path}: no README names it"


def main():
    problems = list(unlisted())
    known = {path.name for path in tree.files()} | OTHERS
    places = collections.defaultdict(list)
    for path in tree.files():
        if path.suffix in tree.C_SUFFIXES or path.suffix in (".py", ".sh", ".js"):
            if path.parts[0] != "include":  # these are always included as <orrery/...>
                places[path.name].append(str(path))
            first = "\n".join(tree.read(path).splitlines()[:3])
            if LICENCE not in first:
                problems.append(f"{path}:1: no line \"{LICENCE}\"")
        if path.suffix not in TEXT_SUFFIXES or path.parts[:2] == ("tests", "fuzz") and "seeds" in path.parts:
            continue
        lines = tree.read(path).splitlines()
        if path.suffix in tree.C_SUFFIXES and path.parts[0] in ("src", "cli", "include"):
            problems += [*stale_names(path, known), *wide_comments(path)]
        if path.suffix in tree.C_SUFFIXES and len(lines) > LINES_MAX:
            problems.append(f"{path}: {len(lines)} lines; look for the seam")
        for number, line in enumerate(lines, 1):
            if MACHINE_PATH.search(line) and path.name != "check_files.py":
                problems.append(f"{path}:{number}: a path of one machine: {line.strip()[:100]}")
    for name, found in sorted(places.items()):
        if len(found) > 1 and name not in SHARED_NAMES:
            problems.append(f"{name}: the name is used {len(found)} times: {', '.join(found)}")
    version = re.search(r"^  version: '(\d+)\.(\d+)\.(\d+)'", tree.read("meson.build"), re.M)
    header = tree.read("include/orrery/version.h")
    for name, number in zip(("MAJOR", "MINOR", "PATCH"), version.groups()):
        if f"#define ORR_VERSION_{name} {number}\n" not in header:
            problems.append(f"include/orrery/version.h: ORR_VERSION_{name} is not {number}, as meson.build has it")
    if f'#define ORR_VERSION "{".".join(version.groups())}"\n' not in header:
        problems.append("include/orrery/version.h: ORR_VERSION is not the version of meson.build")
    tree.report(problems)


main()
