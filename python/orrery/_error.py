# SPDX-License-Identifier: Apache-2.0
"""The exception of the package."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple


class Error(Exception):
    """Something that cannot be read, run or written, with its location.

    code is "input" (the file is malformed), "usage" (an invalid request), "io" (a system error),
    "bug" or "stopped".  path, byte, line and column locate it in the input; those that do not apply are None.  After a
    deadlock, stall has a line per waiting rank; result is the partial result of a run that reached a limit.
    """

    def __init__(self, text: str, message: Optional[str] = None, code: str = "usage", path: str = "", byte: int = -1,
                 line: int = 0, column: int = 0) -> None:
        super().__init__(text)
        self.message = text if message is None else message
        self.code = code
        self.path: Optional[str] = path or None
        self.byte: Optional[int] = byte if byte >= 0 else None
        self.line: Optional[int] = line or None
        self.column: Optional[int] = column or None
        self.stall: List[str] = []
        self.result: Any = None

    def __reduce__(self) -> Tuple[Any, ...]:  # pickled with all fields, to pass between processes
        return Error, (str(self), self.message, self.code, self.path or "", -1 if self.byte is None else self.byte,
                       self.line or 0, self.column or 0)
