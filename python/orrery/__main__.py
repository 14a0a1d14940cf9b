# SPDX-License-Identifier: Apache-2.0
"""python -m orrery: the program, which is part of the package."""

from __future__ import annotations

import os
import sys
from typing import List, NoReturn, Optional


def program() -> str:
    """The path of the program."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "orrery")


def become(name: str, arguments: List[str]) -> NoReturn:
    """Replaces this process with the program, called by this name; old program names work too."""
    sys.stdout.flush()
    os.execv(program(), [name, *arguments])


def main(arguments: Optional[List[str]] = None) -> NoReturn:
    become("orrery", sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    main()
