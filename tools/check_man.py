#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every command has a man page with examples and a row in the README, that all pages are well formed
(mandoc -Tlint), and that installed shells accept the completion scripts."""

import pathlib
import re
import shutil
import subprocess
import sys

import tree


def output(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def check_commands(build, pages):
    for name in output(build / "cli" / "orrery_tables", "commands").stdout.split():
        page = pages / f"orrery-{name}.1"
        if not page.exists():
            yield f"orrery {name} has no page docs/man/orrery-{name}.1.in (and a line in docs/man/meson.build)"
            continue
        if ".Dl $ orrery" not in page.read_text():
            yield f"{page.name}: no examples; add them to the command's table"
        text = output(build / "bin" / "orrery", "help", name).stdout
        if any(len(line) > 80 for line in text.splitlines()):
            yield f"orrery help {name}: a line is wider than 80 columns"


def check_readme(build):
    """The README's table has a row for every command, and no other rows."""
    there = set(output(build / "cli" / "orrery_tables", "commands").stdout.split())
    said = set(re.findall(r"^\| `orrery ([\w-]+)` \|", tree.read("README.md"), re.M))
    yield from (f"README.md: the table has no `orrery {name}`" for name in sorted(there - said))
    yield from (f"README.md: there is no `orrery {name}`" for name in sorted(said - there))


def check_pages(pages):
    if not shutil.which("mandoc"):
        yield "mandoc is not installed"
        return
    for page in sorted(pages.glob("*.[157]")):
        found = output("mandoc", "-Tlint", "-Wwarning", page)
        yield from (found.stdout + found.stderr).splitlines()


def check_completion(build):
    for shell, name in (("bash", "orrery"), ("zsh", "_orrery"), ("fish", "orrery.fish")):
        if shutil.which(shell):
            found = output(shell, "-n", build / "docs" / name)
            if found.returncode != 0:
                yield f"completion for {shell}: {found.stderr.strip()}"


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tree.ROOT / "build").resolve()
    pages = build / "docs" / "man"
    tree.report([*check_commands(build, pages), *check_readme(build), *check_pages(pages), *check_completion(build)])


main()
