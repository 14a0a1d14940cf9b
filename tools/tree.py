# SPDX-License-Identifier: Apache-2.0
"""Shared by the checks: the files of the tree, C text without comments and strings, and reporting."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
C_SUFFIXES = (".c", ".h", ".cc", ".hpp")
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def files():
    """Every file that is tracked or would be, relative to the root, sorted."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.split("\0")
    else:  # an unpacked archive has no .git
        names = [os.path.relpath(os.path.join(folder, name), ROOT)
                 for folder, folders, found in os.walk(ROOT)
                 for name in found if not os.path.relpath(folder, ROOT).startswith(("build", ".git"))]
    return sorted(pathlib.PurePosixPath(name) for name in set(names) if name and (ROOT / name).is_file())


def c_files(*folders):
    """C and C++ files of these top-level folders, or of all."""
    return [path for path in files() if path.suffix in C_SUFFIXES and (not folders or path.parts[0] in folders)]


def read(path):
    return (ROOT / path).read_text(errors="replace")


def code_only(text, keep_strings=False):
    """The text with comments and the contents of strings blanked; line numbers are unchanged."""
    def blank(match):
        token = match.group(0)
        if token.startswith(("/*", "//")):
            return re.sub(r"[^\n]", " ", token)
        return token if keep_strings else token[0] + " " * (len(token) - 2) + token[-1]
    return COMMENT_OR_STRING.sub(blank, text)


def comments(text):
    """The matches of its comments; what looks like one inside a string is none."""
    return (found for found in COMMENT_OR_STRING.finditer(text) if found.group(0).startswith(("/*", "//")))


def report(problems):
    """Prints the problems and exits, with status 1 if there are any."""
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)
