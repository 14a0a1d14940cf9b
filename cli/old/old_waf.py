#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The waf of HPCC's simulator, as its documents and its run.py call it: `./waf --run 'scratch/third mix/config.txt'` runs the
flows of that configuration.  There is nothing to configure or build.  A copy belongs where scripts expect waf; orrery is
looked for in the folders above this file and in PATH."""
import os
import shlex
import shutil
import sys

FOLDERS_ABOVE = 5


def find_orrery(folder):
    for _ in range(FOLDERS_ABOVE):
        for place in (("orrery",), ("bin", "orrery")):
            path = os.path.join(folder, *place)
            if os.access(path, os.X_OK) and os.path.isfile(path):
                return path
        folder = os.path.dirname(folder)
    return shutil.which("orrery")


def fail(text):
    print(f"waf: {text}", file=sys.stderr)
    sys.exit(2)


def command_of(arguments):
    """What follows --run, as words; None: configure, build and the like."""
    for i, word in enumerate(arguments):
        if word.startswith("--run="):
            return shlex.split(word[len("--run="):])
        if word == "--run":
            return shlex.split(arguments[i + 1]) if i + 1 < len(arguments) else fail("--run needs a command")
    return None


def main():
    command = command_of(sys.argv[1:])
    if command is None:
        print("waf: nothing to do: orrery is built already")
        return
    if len(command) != 2 or os.path.basename(command[0]) != "third":
        fail("only --run 'scratch/third CONFIG' is known")
    program = find_orrery(os.path.dirname(os.path.realpath(__file__)))
    if program is None:
        fail("orrery is neither in the folders above this file nor in PATH")
    os.execv(program, ["AstraSimNetwork", f"--network-configuration={command[1]}"])


main()
