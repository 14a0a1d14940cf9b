# SPDX-License-Identifier: Apache-2.0
"""Sweeps: a command for many values of its options, with results in one database.

Points run in forked processes.  A process with threads, such as a notebook, must not fork like that, so the program in
the package runs them, and this process polls the database.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from . import _core
from ._error import Error
from ._progress import Line
from ._make import _bytes
from ._result import _load
from ._trace import Path, _encoded


class Sweep:
    """A database of results, one row per point."""

    def __init__(self, database: Path) -> None:
        self.database = os.fspath(database)

    @property
    def status(self) -> Dict[str, Any]:
        """The number of points, and how many are done or failed."""
        return _core.sweep_status(self.database)

    def rows(self, where: Optional[str] = None, *, sort: Optional[str] = None,
             columns: Union[None, str, Sequence[str]] = None, limit: int = 0, failed: bool = False) -> List[Dict[str, Any]]:
        """Results as dictionaries: axes, measures, and all outputs of the commands.

        where and sort are expressions over columns ("tp <= 8 and fits", "-throughput.tokens_per_s").
        """
        named = columns if columns is None or isinstance(columns, str) else ",".join(columns)
        return self._table({"where": where, "sort": sort, "columns": named, "limit": limit, "failed": failed})

    def best(self, count: int = 10) -> List[Dict[str, Any]]:
        """The best points by the goal of the specification."""
        return self._table({"by_goal": True, "limit": count})

    def _table(self, options: Mapping[str, Any]) -> List[Dict[str, Any]]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.json")
            _core.sweep_table(self.database, path, _encoded(options))
            document = _load(path)
        names = [column["name"] for column in document["columns"]]
        return [{"point": row["point"], **dict(zip(names, row["values"]))} for row in document["rows"]]

    def frame(self, where: Optional[str] = None, **options: Any) -> Any:
        """The rows as a pandas data frame."""
        import pandas  # type: ignore
        return pandas.DataFrame(self.rows(where, **options))

    def __len__(self) -> int:
        return int(self.status["points"])

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self.rows())

    def __repr__(self) -> str:
        status = self.status
        return f"<orrery.Sweep {self.database}: {status['done']} of {status['points']} points, {status['failed']} failed>"


def sweep(specification: Union[Path, Mapping[str, Any]], database: Optional[Path] = None, *, jobs: int = 0,
          timeout: int = 0, cache: Optional[Path] = None, retry: bool = False,
          max_seconds: float = 0, max_memory: Union[None, int, str] = None, max_events: int = 0,
          callback: Optional[Callable[[Dict[str, Any]], None]] = None) -> Sweep:
    """Runs commands for every point of a specification (docs/format/sweep.md), a file or a dictionary.

        s = orrery.sweep({"command": "stage, run", "options": {"model": "gpt2", "machine": "dgx-h100", "dp": 8, ...},
                          "axes": {"zero": [0, 1, 2, 3]}, "goal": "min simulated_ns"}, "grid.db")
        s.best(3); s.frame()

    Points already in the database are not computed again.  callback(status) is called about five times a second while
    points run, instead of the progress line; an exception in it, or Ctrl-C, ends the sweep and keeps the results so
    far.

    max_seconds: a sweep that needs more ends with an Error whose result is the sweep so far; the same call continues
    it.  max_memory (bytes, or "8GiB"), max_events: per point; a point that needs more fails, and if all points fail,
    that Error is raised too.  0 or None: no limit.
    """
    from .__main__ import program
    limits = _limits(max_seconds, _bytes(max_memory), max_events)
    line = Line()

    def show(now: Dict[str, Any]) -> None:
        line.show(f"sweeping: {now['done']:,} of {now['points']:,} points, {now['failed']:,} failed")
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(specification, Mapping):
            if database is None:
                raise Error("a specification in a dictionary needs a database to write to")
            spec = os.path.join(folder, "sweep.yaml")
            with open(spec, "w", encoding="utf-8") as file:
                json.dump(specification, file)  # JSON is valid YAML
        else:
            spec = os.fspath(specification)
        to = os.fspath(database) if database is not None else os.path.splitext(spec)[0] + ".db"
        words = [program(), "sweep", spec, "-o", to, "--jobs", str(jobs), "--quiet"]
        words += ["--timeout", str(timeout)] if timeout else []
        words += ["--cache", os.fspath(cache)] if cache is not None else []
        words += ["--retry"] if retry else []
        words += limits
        log = os.path.join(folder, "log")
        with open(log, "wb") as out:
            child = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
            try:
                while True:
                    try:
                        child.wait(0.2)
                        break
                    except subprocess.TimeoutExpired:
                        if os.path.exists(to):
                            _tell(callback or show, to)
            except BaseException:
                child.terminate()
                child.wait()
                raise
            finally:
                line.end()
        with open(log, encoding="utf-8", errors="replace") as file:
            said = file.read().strip().splitlines()
    # 1: some points failed, as the database records
    if child.returncode not in (0, 1) or not os.path.exists(to):
        code = {2: "usage", 3: "input", 4: "io", 130: "stopped"}.get(child.returncode, "bug")
        text = next((line for line in said if "error" in line or line.startswith("orrery")), said[-1] if said else "")
        text = re.sub(r"^orrery sweep: ", "", text.split("error: ", 1)[-1])
        place = re.match(r"(.*?)(?::(\d+)(?::(\d+))?)?: ", text) if text.startswith(spec) else None
        path, row, column = place.groups() if place else ("", None, None)
        error = Error(text or f"the sweep ended with status {child.returncode}", code=code, path=path or "",
                      line=int(row or 0), column=int(column or 0))
        if code == "stopped" and os.path.exists(to):
            error.result = Sweep(to)
        raise error
    done = Sweep(to)
    if callback is not None:
        callback(done.status)
    return done


def _limits(seconds: float, memory: Optional[int], events: int) -> List[str]:
    if not 0 <= seconds < float("inf"):
        raise Error(f"max_seconds: a time was expected, not {seconds}")
    for name, value in (("max_memory", memory), ("max_events", events)):
        if value is not None and not 0 <= value < 1 << 63:
            raise OverflowError(f"{name}: {value} is out of range")
    words = ["--max-time", f"{min(max(seconds, 1e-12), 9e6):.12f}s"] if seconds else []
    words += ["--max-memory", f"{memory}B"] if memory else []
    return words + (["--max-events", str(events)] if events else [])


def _tell(callback: Callable[[Dict[str, Any]], None], database: str) -> None:
    try:
        status = _core.sweep_status(database)
    except Error:  # still being written
        return
    callback(status)
