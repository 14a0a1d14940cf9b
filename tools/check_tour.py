#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every file in docs/tour.md exists, and that no walk enters a room twice."""

import re

import tree


def room_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "src" else parts[0]


def check_walk(walk):
    title, *steps = re.split(r"^\d+\. ", walk, flags=re.M)
    seen = []
    for step in steps:
        here = {room_of(path) for path in re.findall(r"`((?:src|cli|web)/[\w./-]+)`", step.split("\n\n")[0])}
        if len(here) > 1:
            yield f"docs/tour.md: {title.splitlines()[0]}: one step names the rooms {', '.join(sorted(here))}"
        yield from (f"docs/tour.md: {title.splitlines()[0]}: enters {room} twice" for room in here if room in seen)
        seen += here


def main():
    text = tree.read("docs/tour.md")
    problems = [f"docs/tour.md: there is no {path}" for path in re.findall(r"`((?:src|cli|web|include|tools|docs)/[\w./-]+)`", text)
                if not (tree.ROOT / path).exists()]
    for walk in text.split("\n## ")[1:]:
        problems += check_walk(walk)
    tree.report(problems)


main()
