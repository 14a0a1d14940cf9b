#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/spec/commands.md: the last cell of every row names an existing test: `cli/name`, `golden/test_name`."""

import re

import tree

PAGE = "docs/spec/commands.md"
PLACES = {"cli": ["tests/cli/{}.sh"], "unit": ["tests/unit/{}.c"], "build": ["tests/build/{}"],
          "golden": ["tests/golden/{}", "tests/golden/{}.c", "tests/golden/{}.cc", "tests/golden/{}.py"],
          "fuzz": ["tests/fuzz/fuzz_{}.c", "tests/fuzz/{}.c"], "capture": ["tests/capture/{}"],
          "browser": ["tests/browser/{}.mjs"], "bench": ["bench/{}.c"], "check": ["tools/{}.py", "tools/{}.sh"]}


def rows(text):
    for number, line in enumerate(text.splitlines(), 1):
        cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
        if line.startswith("|") and not set(line) <= set("|- ") and cells[-1].strip() != "test":
            yield number, cells


def findings(text):
    for number, cells in rows(text):
        if len(cells) != 3:
            yield f"{PAGE}:{number}: a row has three cells: the command, what it does here, the test"
            continue
        named = re.findall(r"`(\w+)/([\w-]+)`", cells[2])
        if not named:
            yield f"{PAGE}:{number}: no test is named"
        for group, name in named:
            if not any((tree.ROOT / place.format(name)).is_file() for place in PLACES.get(group, [])):
                yield f"{PAGE}:{number}: there is no test {group}/{name}"


def main():
    tree.report([*findings(tree.read(PAGE))])


main()
