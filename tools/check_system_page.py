#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that docs/format/system.md has every key and word that the readers of the system, network, memory, group and
logical files know, and no other keys."""

import re

import tree

PAGE = "docs/format/system.md"
# A file that reads one of these keys is a reader.
MARKERS = ("preferred-dataset-splits", "memory-type", "logical-dims", "npus_count", "chunk-order")
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
WORD = re.compile(r"[A-Za-z][\w-]*")


def words_of(path):
    """One-word strings of a C file, except those of #include lines."""
    text = re.sub(r"^\s*#\s*include[^\n]*", "", tree.code_only(tree.read(path), keep_strings=True), flags=re.M)
    return {word for word in LITERAL.findall(text) if WORD.fullmatch(word)}


def main():
    # src/explain only displays keys.
    words = {path: words_of(path) for path in tree.c_files("src") if path.suffix == ".c" and "explain" not in path.parts}
    readers = {path: found for path, found in words.items() if found & set(MARKERS)}
    page = tree.read(PAGE)
    known = set().union(*readers.values())
    problems = [f"{PAGE}: no reader in src knows \"{key}\"; is tools/check_system_page.py up to date?"
                for key in MARKERS if key not in known]
    for path, found in sorted(readers.items()):
        for word in sorted(found):
            if not re.search(rf'[`"]{word}[`"]' if len(word) < 4 else word, page):
                problems.append(f"{path}: \"{word}\" is not on {PAGE}")
    for line in page.splitlines():
        if line.startswith("| `") and line.count("|") == 5:  # key, value, default, effect
            for key in re.findall(r"`([\w-]+)`", line.split("|")[1]):
                if key not in known:
                    problems.append(f"{PAGE}: \"{key}\" is not read by any of {', '.join(map(str, sorted(readers)))}")
    tree.report(problems)


main()
