#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measured collectives lie as near to `orrery nccl-tests` as docs/validation.md says, no mean error has grown, and published
training steps meet their targets (10 % mean, no row over 25 %, order 0.9)."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
build = sys.argv[1] if len(sys.argv) > 1 else "build"
sys.exit(subprocess.run([ROOT / "truth" / "collectives" / "validate.py", "--build", build, "--check", "--quick"], check=False).returncode)
