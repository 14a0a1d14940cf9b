# SPDX-License-Identifier: Apache-2.0
"""Progress of long work: one line that is updated, on a terminal and in a notebook."""

from __future__ import annotations

import sys
import time
from typing import Any


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None and hasattr(shell, "get_ipython") else None
    return found is not None and hasattr(found, "kernel")


class Line:
    """Appears after half a second, and disappears when the work is done.  Prints nothing to a file or a pipe."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.handle: Any = None
        self.width = 0
        self.is_notebook = _in_notebook()
        self.is_terminal = not self.is_notebook and sys.stderr is not None and sys.stderr.isatty()

    def show(self, text: str) -> None:
        if time.monotonic() - self.started < 0.5:
            return
        if self.is_notebook:
            from IPython.display import display  # type: ignore
            if self.handle is None:
                self.handle = display(text, display_id=True)
            else:
                self.handle.update(text)
        elif self.is_terminal:
            sys.stderr.write("\r" + text.ljust(self.width))
            sys.stderr.flush()
            self.width = len(text)

    def end(self) -> None:
        if self.handle is not None:
            self.handle.update("")
        if self.is_terminal and self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
