#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every path that a document names exists: `src/run/clock.c`, docs/format/et.md, tests/golden/data/.

Checks *.md and the man pages (*.in).  A path starts with a top-level folder; *, ?  and <placeholder> match anything.
Source files named without a folder, such as `clock.c`, and links between Markdown files are checked too."""

import fnmatch
import re

import tree

TOPS = "bench|capture|cli|docs|examples|include|src|tests|tools|web"
PATH = re.compile(r"(?<![\w/.~$-])(?:" + TOPS + r")/[\w./<>*?{},-]*")
SOURCE = re.compile(r"`(\w+\.(?:c|cc|h|hpp))`")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
HEADERS = re.compile(r"<(orrery/[\w/.]+\.h(?:pp)?)>")
# Text about the trees of other programs, and files that programs write.
SKIP = ("docs/spec/", "tests/golden/data/LICENCES.md")
# Names invented by the recipes of the READMEs.
MADE_UP = re.compile(r"NAME|(?<![a-z])show(?![a-z])")


def braces(path):
    """a/{b,c}.h -> a/b.h, a/c.h"""
    found = re.search(r"\{([^{}]*)\}", path)
    if not found:
        return [path]
    return [whole for part in found[1].split(",") for whole in braces(path[:found.start()] + part + path[found.end():])]


def main():
    names = {str(path) for path in tree.files()}
    names |= {str(folder) for path in tree.files() for folder in path.parents}
    sources = {path.name for path in tree.files() if path.suffix in tree.C_SUFFIXES}
    problems = []

    def known(path):
        path = MADE_UP.sub("*", re.sub(r"<[^>]*>", "*", path)).rstrip("/")
        if re.search(r"[*?]", path):
            return any(fnmatch.fnmatch(name, path) for name in names)
        return path in names or any(name.startswith(path + ".") for name in names)  # bench/bench_sim is bench_sim.c

    for document in tree.files():
        if document.suffix not in (".md", ".in") or str(document).startswith(SKIP):
            continue
        for number, line in enumerate(tree.read(document).splitlines(), 1):
            line = re.sub(r"(?:tests/run|TESTS=)[^`]*", "", line)  # names of tests, not of files
            named = [whole for path in PATH.findall(line) for whole in braces(path.rstrip(".,-"))]
            named += ["include/" + header for header in HEADERS.findall(line)]
            if document.suffix == ".md":
                for target in LINK.findall(line):
                    where = (tree.ROOT / document.parent / target).resolve()
                    named.append(str(where.relative_to(tree.ROOT)) if tree.ROOT in where.parents else target)
            for source in SOURCE.findall(line):
                if source not in sources and not MADE_UP.search(source):
                    problems.append(f"{document}:{number}: there is no {source}")
            for path in named:
                if not known(path):
                    problems.append(f"{document}:{number}: there is no {path}")
    tree.report(problems)


main()
