#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measured collectives lie as near to `orrery nccl-tests` as docs/validation.md says, and no mean error has grown.
check_validation_steps.py and check_validation_large.py judge training steps: together all that `make validate` does."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
build = sys.argv[1] if len(sys.argv) > 1 else "build"
sys.exit(subprocess.run([ROOT / "truth" / "collectives" / "validate.py", "--build", build, "--check"], check=False).returncode)
