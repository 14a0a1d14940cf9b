#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An old program that people start with python3: hands its arguments to orrery, which knows it by its name.

`python3 NAME.py ...` and `python3 -m PACKAGE.NAME` need a file that Python can read, so it cannot be a link to the
binary.  orrery is looked for beside this file and in the folders above it, where an installation puts it, and in PATH;
the file may therefore be copied to where a script expects it."""
import os
import shutil
import sys

# Modules whose name says less than that of the program.
PROGRAMS = {"converter": "chakra_converter", "et_converter": "et_converter", "generator": "chakra_generator",
            "et_generator": "et_generator", "jsonizer": "chakra_jsonizer", "et_jsonizer": "chakra_jsonizer",
            "visualizer": "chakra_visualizer", "et_visualizer": "et_visualizer",
            "timeline_visualizer": "chakra_timeline_visualizer", "trace_link": "chakra_trace_link", "main": "stage"}
FOLDERS_ABOVE = 5


def find_orrery(folder):
    for _ in range(FOLDERS_ABOVE):
        for place in (("orrery",), ("bin", "orrery")):
            path = os.path.join(folder, *place)
            if os.access(path, os.X_OK) and os.path.isfile(path):
                return path
        folder = os.path.dirname(folder)
    return shutil.which("orrery")


def main():
    name = os.path.basename(sys.argv[0])
    name = PROGRAMS.get(os.path.splitext(name)[0], name)
    program = find_orrery(os.path.dirname(os.path.realpath(__file__)))
    if program is None:
        sys.exit(f"{name}: orrery is neither beside this file nor in PATH")
    os.execv(program, [name] + sys.argv[1:])


main()
