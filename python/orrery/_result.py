# SPDX-License-Identifier: Apache-2.0
"""Runs: from traces and a machine to results."""

from __future__ import annotations

import html
import inspect
import json
import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _core
from ._core import Node
from ._error import Error
from ._progress import Line
from ._trace import Path, Set, Trace, _array, _encoded, _numpy, open

Network = Callable[[int, int, int, float], float]
Compute = Callable[[Node], Optional[float]]
Collective = Callable[[str, int, int, int, int], Iterator[Tuple[Any, ...]]]

_NEVER = (1 << 63) - 1


def _ns(column: Any) -> Any:
    """Picoseconds as nanoseconds; NaN for a time that is never reached."""
    numpy = _numpy()
    if numpy is None:
        return [float("nan") if ps == _NEVER else ps / 1000 for ps in column.tolist()]
    ps = numpy.asarray(column)
    return numpy.where(ps == _NEVER, numpy.nan, ps / 1000)


class Timeline(_core.Timeline):
    """When things happened, one row per span, simulated or measured."""

    __slots__ = ()
    names = ("rank", "track", "name", "kind", "start_ns", "end_ns", "size", "group", "id")

    def column(self, name: str) -> Any:
        """One column: numbers as a NumPy array (start_ps, end_ps, size, id, rank, ... without copying), texts as a
        list.

        Texts are name, track, group, kind and collective; start_ns and end_ns are floats.
        """
        if name in ("name", "track", "group"):
            return self._texts(name)
        if name == "kind":
            return [_core.SPAN_KINDS[number] for number in self._column("kind").tolist()]
        if name == "collective":
            words = {number + 1: word for word, number in _core.COLLECTIVES.items()}
            return [words.get(number) for number in self._column("collective").tolist()]
        if name in ("start_ns", "end_ns"):
            return _ns(self._column(name[:-2] + "ps"))
        return _array(self._column(name))

    @property
    def columns(self) -> Dict[str, Any]:
        """All columns by name."""
        return {name: self.column(name) for name in self.names}

    def frame(self, library: str = "pandas") -> Any:
        """A data frame: rank, track, name, kind, start_ns, end_ns, size (bytes), group, id."""
        if library == "polars":
            import polars  # type: ignore
            return polars.DataFrame(self.columns)
        import pandas  # type: ignore
        return pandas.DataFrame(self.columns)

    def __repr__(self) -> str:
        start, end = self._bounds
        return f"<orrery.Timeline of {len(self):,} spans over {(end - start) / 1e9:,.3f} ms>"


class CriticalPath:
    """The chain of operations that set the run time, without a gap from start to end."""

    def __init__(self, path: Mapping[str, Any]) -> None:
        self.steps: List[Dict[str, Any]] = path["steps"]
        self.shares: List[Dict[str, Any]] = path["shares"]
        self.ranks: int = path["ranks"]
        self.total_ns: int = path["total_ns"]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self.steps)

    def frame(self) -> Any:
        """The steps as a pandas data frame."""
        import pandas
        return pandas.DataFrame(self.steps)

    def __repr__(self) -> str:
        shares = ", ".join(f"{s['what']} {100 * s['time_ns'] / max(1, self.total_ns):.1f} %" for s in self.shares[:4])
        return f"<orrery.CriticalPath of {len(self.steps):,} steps, {self.total_ns:,} ns: {shares}>"


class Result(_core.Run):
    """The results of a run.

    time_ns is the run time; ranks, critical_path, timeline, links and dimensions say where it went; report(path) writes
    the HTML page.  A notebook displays it as a table.
    """

    __slots__ = ("set", "made_from", "__weakref__")
    set: Optional[Set]  # None: the run had a schedule or flows
    made_from: str

    @property
    def time_ns(self) -> float:
        """When the last rank finished, in nanoseconds."""
        return float(self._figures()["time_ps"] / 1000)

    @property
    def time_ms(self) -> float:
        """The same in milliseconds."""
        return float(self._figures()["time_ps"] / 1e9)

    @property
    def summary(self) -> Dict[str, Any]:
        """The output of `orrery run --json` as a dictionary."""
        return self._json("json")

    @property
    def facts(self) -> Dict[str, Any]:
        """The data of the report as a dictionary (docs/format/report.md); needs timeline=True."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "facts.json")
            self._report(path, None, 1, True, None)
            return _load(path)

    def _json(self, what: str) -> Dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            self._write(what, path)
            return _load(path)

    @property
    def events(self) -> int:
        """Number of simulated events."""
        return int(self._figures()["events"])

    @property
    def messages(self) -> int:
        """Number of messages on the network."""
        return int(self._figures()["messages"])

    @property
    def rank_count(self) -> int:
        """Number of ranks."""
        return int(self._figures()["ranks"])

    @property
    def ranks_simulated(self) -> int:
        """Ranks that were simulated on behalf of all (docs/design/folding.md)."""
        return int(self._figures()["ranks_simulated"])

    @property
    def steps(self) -> Dict[str, float]:
        """Of run(steps=100): how many were requested and simulated, and total_ns of all, first_ns and last_ns of one.

        All other results are those of the last step.
        """
        f = self._figures()
        return {"asked": int(f["steps"]), "simulated": int(f["steps_simulated"]), "total_ns": f["all_steps_ps"] / 1000,
                "first_ns": f["first_step_ps"] / 1000, "last_ns": f["last_step_ps"] / 1000}

    @property
    def seconds(self) -> float:
        """Wall-clock time of the simulation, in seconds."""
        return float(self._figures()["seconds"])

    @property
    def ranks(self) -> Dict[str, Any]:
        """One row per rank: finished_ns, wall_ns, gpu_ns, comm_ns, cpu_ns, memory_ns, gpu_total_ns, peak_memory_bytes."""
        columns = self._ranks()
        return {name[:-2] + "ns" if name.endswith("_ps") else name:
                _ns(column) if name.endswith("_ps") else _array(column) for name, column in columns.items()}

    def frame(self) -> Any:
        """The ranks as a pandas data frame."""
        import pandas
        frame = pandas.DataFrame(self.ranks)
        frame.index.name = "rank"
        return frame

    @property
    def timeline(self) -> Timeline:
        """When each operation ran."""
        return self._timeline(Timeline)

    @property
    def critical_path(self) -> CriticalPath:
        """The critical path."""
        return CriticalPath(self._critical_path())

    @property
    def links(self) -> List[Dict[str, Any]]:
        """Traffic of each link, if the network has links."""
        return self._links()

    @property
    def dimensions(self) -> List[Dict[str, Any]]:
        """The dimensions of the network and their traffic."""
        return self._dimensions()

    @property
    def warnings(self) -> List[str]:
        """Oddities in the inputs that are not errors."""
        return self._warnings()

    def report(self, path: Path, *, title: Optional[str] = None, what_if: str = "estimate",
               ranks: Optional[str] = None) -> str:
        """Writes the HTML report, one self-contained file, and returns its path.

        what_if: "off", "estimate" (from the critical path), "simulate" (one run per change) or "auto".
        ranks: "all", or "0-7,12"; default: one of each group of identical ranks.
        """
        words = {"auto": 0, "off": 1, "estimate": 2, "simulate": 3}
        if what_if not in words:
            raise Error(f"what_if is one of {', '.join(words)}, not '{what_if}'")
        self._report(os.fspath(path), title or self.made_from, words[what_if], False, ranks)
        return os.fspath(path)

    def write(self, what: str, path: Path) -> None:
        """Writes "text", "json", "csv", "links", "trace-log" or "memory", as `orrery run` does."""
        self._write(what, os.fspath(path))

    def __repr__(self) -> str:
        figures = self._figures()
        return f"<orrery.Result: {figures['time_ps'] / 1e9:,.3f} ms on {figures['ranks']:,} ranks, " \
               f"{figures['events']:,} events>"

    def _repr_html_(self) -> str:
        figures = self._figures()
        ranks = self.ranks
        rows = [("run time", f"{self.time_ns:,.0f} ns"), ("ranks", f"{figures['ranks']:,}"),
                ("simulated ranks", f"{figures['ranks_simulated']:,}"), ("messages", f"{figures['messages']:,}"),
                ("events", f"{figures['events']:,}")]
        if figures["ranks"] and self.time_ns:
            for label, name in (("compute, mean of ranks", "gpu_ns"), ("communication, mean of ranks", "comm_ns")):
                mean = float(sum(ranks[name])) / figures["ranks"]
                rows.append((label, f"{mean:,.0f} ns ({100 * mean / self.time_ns:.1f} %)"))
        body = "".join(f"<tr><th style='text-align:left'>{html.escape(a)}</th>"
                       f"<td style='text-align:right'>{html.escape(b)}</td></tr>" for a, b in rows)
        notes = "".join(f"<li>{html.escape(text)}</li>" for text in self.warnings)
        return f"<div><b>{html.escape(self.made_from)}</b><table>{body}</table>{f'<ul>{notes}</ul>' if notes else ''}</div>"


def _load(path: str) -> Dict[str, Any]:
    import io
    with io.open(path, encoding="utf-8") as file:
        return dict(json.load(file))


# ---- run ----

def _as_set(traces: Union[Path, Set, Trace, Sequence[Trace]], threads: int) -> Set:
    if isinstance(traces, Set):
        return traces
    if isinstance(traces, Trace):
        return Set([traces])
    if isinstance(traces, (list, tuple)):
        return Set(traces)
    return open(traces, threads=threads)  # type: ignore[arg-type]


_PLAIN = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
_ROOTED = {"broadcast", "reduce", "gather", "scatter", "barrier"}


def _collectives(given: Mapping[str, Collective]) -> Tuple[List[Tuple[bytes, Collective, bool]], Dict[str, List[bytes]]]:
    """Algorithms by the name that a system file uses, or by the collective that they run."""
    algorithms, chosen = [], {}
    for name, function in given.items():
        if not callable(function):
            raise TypeError(f"collectives['{name}'] is not a function")
        kind = name.lower().replace("-", "_")
        is_known = kind in _PLAIN or kind in _ROOTED
        label = (f"python-{kind}" if is_known else name).encode()
        algorithms += [(label, function, rooted) for rooted in (False, True)
                       if not is_known or rooted == (kind in _ROOTED)]
        if is_known:
            chosen[kind] = [label]
    return algorithms, chosen


_GOAL_ENDINGS = (".goal", ".goal.gz", ".goal.zst", ".bin", ".bin.gz", ".bin.zst")


def _is_goal(traces: Any) -> bool:
    """By its extension or its first bytes, as in the program."""
    if not isinstance(traces, (str, os.PathLike)):
        return False
    path = str(os.fspath(traces))
    return path.endswith(_GOAL_ENDINGS) or (os.path.isfile(path) and _core.is_goal(path))


def _take_input(traces: Any, flows: Any, network: Any, threads: int, options: Dict[str, Any]) -> Optional[Set]:
    """Puts the input into options; returns its set, if it is one."""
    if flows is not None:
        if traces is not None:
            raise Error("flows run alone: give traces or flows, not both")
        options["is_flows"] = True
        options["flows"] = None if flows is True else flows
        return None
    if traces is None:
        raise Error("run needs traces, a schedule, or flows=")
    is_goal = _is_goal(traces)
    plain = options.get("topology") is None and options.get("machine") is None
    options["is_schedule"] = network == "loggops" or (network is None and is_goal and plain)
    if is_goal:
        if options["is_schedule"]:
            options["goal"] = os.fspath(traces)
            return None
        from ._make import convert
        return convert(traces, "goal")
    opened = _as_set(traces, threads)
    if not len(opened):
        raise Error("there are no traces to run")
    return opened


def run(traces: Union[None, Path, Set, Trace, Sequence[Trace]] = None, machine: Union[None, Path] = None, *,
        network: Union[None, str, Network] = None, compute: Optional[Compute] = None,
        collectives: Optional[Mapping[str, Collective]] = None,
        system: Optional[Path] = None, topology: Optional[Path] = None, memory: Optional[Path] = None,
        groups: Optional[Path] = None, plans: Optional[str] = None, ranks_file: Optional[Path] = None,
        hardware: Optional[str] = None, software: Optional[str] = None, ideal: bool = False,
        logical: Optional[Path] = None, packet_config: Optional[Path] = None, packet_keys: Optional[str] = None,
        queues: int = 0, rendezvous: bool = False, steps: int = 1, fold: str = "auto", threads: int = 0,
        flows: Union[None, bool, Path] = None, loggops: Optional[str] = None, noise: Optional[Path] = None,
        timeline: Union[bool, str] = True, links: bool = False,
        compute_scale: float = 0, memory_scale: float = 0, bandwidth_scale: float = 0, latency_scale: float = 0,
        max_seconds: float = 0, max_memory: Union[None, int, str] = None, max_events: int = 0,
        progress: Union[bool, Callable[[int, int, int, int], None]] = True) -> Result:
    """Simulates traces on a model of a cluster.

        orrery.run("step.orr", machine="dgx-h100:16", network="aware").report("step.html")

    traces: a path, a Set, or traces, one per rank; or a GOAL schedule (text or binary).  machine: a cluster by name
    ("dgx-h100:16"; orrery.machines()) or file; or system= and topology=, files of ASTRA-sim; without any of them: the
    default system and one switch.  network: "fluid" (the default), "unaware", "aware", "graph", "packet" or "loggops"
    (loggops="L=3700,o=200"; the default of a schedule without a machine).  flows="flows.txt" runs only flows, packet by
    packet, without traces; True: those of the configuration in topology.  Other options are those of `orrery run`.

    For prototypes, slow because each call is Python:

        network(src, dst, size, now_ns) -> nanoseconds until the message is there
        compute(node) -> nanoseconds, or None: as without it; asked once for each compute node of each distinct rank
        collectives={"all-reduce": f}, f(kind, member, members, size, root) a generator that yields what one member
        does: ("send", member, bytes), ("receive", member, bytes), ("reduce", bytes)

    timeline: record spans, for timeline, critical_path and report; "phases" also records each phase of collectives;
    False saves memory.  links: record links.  progress: a line while it runs, or a callable
    (now_ps, finished, ranks, events), which is called ten times a second.  Ctrl-C ends the run.

    max_seconds, max_memory (bytes, or "8GiB"; of the whole process), max_events: a run that needs more ends with an
    Error whose result has the results so far.  0 or None: no limit.
    """
    options: Dict[str, Any] = {
        "machine": machine, "system": system, "topology": topology, "memory": memory, "groups": groups,
        "plans": plans, "ranks_file": ranks_file, "hardware": hardware, "software": software, "logical": logical,
        "packet_config": packet_config, "packet_keys": packet_keys, "fold": fold, "ideal": ideal,
        "rendezvous": rendezvous, "steps": steps, "queues": queues, "threads": threads, "compute_scale": compute_scale,
        "memory_scale": memory_scale, "bandwidth_scale": bandwidth_scale, "latency_scale": latency_scale}
    options.update(loggops=loggops, noise=noise, max_seconds=max_seconds, max_bytes=_limit(max_memory), max_events=max_events)
    opened = _take_input(traces, flows, network, threads, options)
    if not 0 <= max_seconds < float("inf"):
        raise Error(f"max_seconds: a time was expected, not {max_seconds}")
    if not 1 <= steps <= 1000000:
        raise Error(f"steps: expected a number from 1 to 1,000,000, not {steps}")
    if steps > 1 and (flows is not None or options["is_schedule"]):
        raise Error("steps: only traces run several times in a row, not schedules or flows")
    if traces is not None and not isinstance(traces, (Set, Trace, list, tuple)):
        options["traces"] = os.fspath(traces)  # type: ignore[arg-type]
    if callable(network):
        options["own_network"] = network
    else:
        options["network"] = network
    if compute is not None:
        options["own_compute"] = compute
        options["trace_class"] = Trace
    if collectives:
        algorithms, chosen = _collectives(collectives)
        options["own_collectives"] = algorithms
        if chosen:
            if system is not None:
                raise Error("with a system file, name the algorithm there and pass it by that name")
            options["algorithms"] = chosen
    if flows is not None:
        timeline = False
    options["records"] = (_core.SPANS if timeline else 0) | (_core.PHASES if timeline == "phases" else 0) | \
        (_core.LINKS if links else 0) | (_core.HISTORY if timeline and network == "packet" else 0)
    options["set"] = opened
    line = Line()

    def show(now_ps: int, finished: int, ranks: int, events: int) -> None:
        line.show(f"simulating: {now_ps / 1e9:,.3f} ms, {finished:,} of {ranks:,} ranks done, {events:,} events")
    try:
        result = _core.run(Result, _encoded(options), show if progress is True else progress if callable(progress) else None)
    except Error as e:
        if e.result is not None:
            e.result.set = opened
            e.result.made_from = _title(options, machine, network)
        raise
    finally:
        line.end()
    result.set = opened
    result.made_from = _title(options, machine, network)
    return result


def _limit(value: Union[None, int, str]) -> Optional[int]:
    from ._make import _bytes
    return _bytes(value)


def _title(options: Mapping[str, Any], machine: Any, network: Any) -> str:
    what = os.path.basename(str(options.get("traces") or "")) or "traces"
    name = getattr(network, "__name__", type(network).__name__) if callable(network) else network
    where = str(machine) if machine else os.path.basename(str(options["topology"])) if options["topology"] else "one switch"
    return f"{what} on {where}" + (f", network {name}" if name else "")
