#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the root of the tree has no stray files: every file and folder there must be listed here."""

import tree

FILES = set(""".clang-format .clang-tidy .editorconfig .git-blame-ignore-revs .gitattributes .gitignore
CHANGES.md CONTRIBUTING.md LICENSE Makefile README.md SECURITY.md meson.build meson_options.txt pyproject.toml""".split())
FOLDERS = set(".ci bench capture cli docs examples include python src tests tools truth web".split())


def main():
    problems = set()
    for path in tree.files():
        name = path.parts[0]
        if name not in (FILES if len(path.parts) == 1 else FOLDERS):
            problems.add(f"{name}: does not belong into the root; tools/check_root.py lists what does")
    tree.report(sorted(problems))


main()
