#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An old program that people start with python3: hands its arguments to orrery, which knows it by its name.

`python3 NAME.py ...` needs a file that Python can read, so it cannot be a link to the binary.  orrery is looked for
beside this file, where an installation puts it, and in PATH; the file may therefore be copied to where a script
expects it."""
import os
import shutil
import sys


def find_orrery(folder):
    for place in (("orrery",), ("..", "orrery"), ("..", "..", "bin", "orrery"), ("..", "..", "..", "bin", "orrery")):
        path = os.path.join(folder, *place)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return shutil.which("orrery")


def main():
    name = os.path.basename(sys.argv[0])
    program = find_orrery(os.path.dirname(os.path.realpath(__file__)))
    if program is None:
        sys.exit(f"{name}: orrery is neither beside this file nor in PATH")
    os.execv(program, [name] + sys.argv[1:])


main()
