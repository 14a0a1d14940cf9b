#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the tables of truth/limits.csv that run in seconds: no mean error may be larger than when it was last
improved.  `make truth` checks all of them."""

import pathlib
import subprocess
import sys

import tree

FAST = ("h200-device", "h200-compiled", "h200-host", "h200-forward", "h200-captured", "h200-prefill", "h200-decode", "h200-memory")


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tree.ROOT / "build").resolve()
    if not (build / "bin" / "orrery").exists():
        sys.exit(77)
    words = [word for name in FAST for word in ("--table", name)]
    done = subprocess.run([str(tree.ROOT / "truth" / "truth.py"), "--build", str(build), "--check", *words], capture_output=True, text=True)
    sys.stdout.write(done.stderr)
    sys.exit(done.returncode)


main()
