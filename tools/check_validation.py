#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the errors of measured collectives are those of docs/validation.md, and that no mean error has grown.
Together with check_validation_steps.py and check_validation_large.py, which judge training steps, this is `make
validate`."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
build = sys.argv[1] if len(sys.argv) > 1 else "build"
sys.exit(subprocess.run([ROOT / "truth" / "collectives" / "validate.py", "--build", build, "--check"], check=False).returncode)
