#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that published training steps meet their targets (10 % mean, no row over 25 %, order 0.9): Megatron-LM 2020,
Llama 3, FSDP of PyTorch."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
build = sys.argv[1] if len(sys.argv) > 1 else "build"
sys.exit(subprocess.run([ROOT / "truth" / "collectives" / "validate.py", "--build", build, "--check", "--steps", "megatron-2020,llama3,fms-fsdp"], check=False).returncode)
