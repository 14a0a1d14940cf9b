# SPDX-License-Identifier: Apache-2.0
"""Traces and sets of them: reading, columns, building, checking."""

from __future__ import annotations

import operator
import os
import pathlib
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _core
from ._core import Node
from ._error import Error

Path = Union[str, "os.PathLike[str]"]

NODE_TYPES: Dict[str, int] = _core.NODE_TYPES
"""Types of nodes by name: {"COMP_NODE": 4, ...}."""
COLLECTIVES: Dict[str, int] = _core.COLLECTIVES
"""Collectives by name: {"ALL_REDUCE": 0, ...}."""
NO_VALUE = -(1 << 63)
"""What an integer column holds for a node without that attribute."""


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _array(column: Any) -> Any:
    """A NumPy array over the same memory, or the column itself without NumPy."""
    numpy = _numpy()
    return column if numpy is None else numpy.asarray(column)


# ---- values ----

class Value:
    """An attribute value with its member of the schema: Value("int32_val", 5)."""

    __slots__ = ("member", "value", "doc")

    def __init__(self, member: str, value: Any, doc: str = "") -> None:
        if member not in _core.MEMBERS:
            raise Error(f"there is no member '{member}' of attributes; there are {', '.join(sorted(_core.MEMBERS))}")
        self.member, self.value, self.doc = member, value, doc

    def __repr__(self) -> str:
        return f"Value({self.member!r}, {self.value!r})"


# The members that Chakra's tools use for these attributes; readers accept any other of the same kind.
_MEMBER_OF = {"comm_type": "int64_val", "comm_size": "int64_val", "comm_src": "int32_val", "comm_dst": "int32_val",
              "comm_tag": "int32_val", "comm_priority": "int32_val", "tensor_size": "uint64_val",
              "num_ops": "int64_val", "is_cpu_op": "bool_val", "pg_name": "string_val", "stream": "int64_val"}
_Record = Tuple[str, int, bool, Any, str]


def _member_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool_val"
    if isinstance(value, int):
        return "int64_val" if value < 1 << 63 else "uint64_val"
    if isinstance(value, float):
        return "double_val"
    if isinstance(value, str):
        return "string_val"
    if isinstance(value, (bytes, bytearray)):
        return "bytes_val"
    raise TypeError(f"an attribute is a number, a text, bytes or a list of these, not {type(value).__name__}")


def _record(name: str, value: Any) -> _Record:
    doc = ""
    if isinstance(value, Value):
        member, value, doc = value.member, value.value, value.doc
    elif isinstance(value, (list, tuple)):
        members = {_member_of(item) for item in value} or {"int64_val"}
        if members == {"int64_val", "double_val"}:
            members = {"double_val"}
        if len(members) != 1:
            raise TypeError(f"the items of '{name}' are of different kinds")
        member = members.pop()[:-len("val")] + "list"
    else:
        if hasattr(value, "item") and type(value).__module__ == "numpy":
            value = value.item()
        member = _member_of(value)
        wanted = _MEMBER_OF.get(name)
        if wanted and (member.startswith("int") or member.startswith("uint")) and wanted.endswith("int64_val") \
                or wanted and isinstance(value, int) and wanted in ("int32_val", "bool_val"):
            member = wanted
    kind, is_list = _core.MEMBERS[member]
    return name, kind, is_list, value, doc


# ---- columns ----

class Columns(Mapping[str, Any]):
    """The columns of a trace by name, each a NumPy array over the library's own memory.

    A node without an attribute has NO_VALUE there (is_cpu_op and comm_type: -1).  Only the ids of a rank that shares
    its trace under different ids are a copy.  data_first and data_dep are the dependencies as indices of nodes, as a
    CSR matrix: those of node i are data_dep[data_first[i]:data_first[i + 1]].
    """

    __slots__ = ("_trace",)
    _edges = ("data_first", "data_dep", "ctrl_first", "ctrl_dep")

    def __init__(self, trace: "Trace") -> None:
        self._trace = trace

    def __getitem__(self, name: str) -> Any:
        return _array(self._trace._column(name))

    def __iter__(self) -> Iterator[str]:
        return iter([*_core.COLUMNS, *self._edges])

    def __len__(self) -> int:
        return len(_core.COLUMNS) + len(self._edges)


class Trace(_core.Trace):
    """The trace of one rank: a graph of nodes.

    Read one with orrery.open, or make one:

        t = orrery.Trace()
        a = t.compute("gemm", num_ops=2e12, tensor_size=1 << 30)
        t.collective("ALL_REDUCE", 1 << 26, deps=[a])
        t.write("step.0.et")

    Nodes can be added until the trace is read, written or run for the first time.
    """

    __slots__ = ("_next",)
    _next: int

    def __init__(self, version: Optional[str] = "0.0.4", attrs: Optional[Mapping[str, Any]] = None) -> None:
        """An empty trace.  version and attrs are its metadata; version None: the file has none."""
        self._next = 0
        self._begin(version, [_record(k, v) for k, v in (attrs or {}).items()])

    # -- building

    def add(self, name: str, type: Union[int, str], *, id: Optional[int] = None, deps: Iterable[int] = (),
            ctrl_deps: Iterable[int] = (), start_us: int = 0, duration_us: int = 0,
            inputs: Optional[Tuple[str, str, str]] = None, outputs: Optional[Tuple[str, str, str]] = None,
            attrs: Union[None, Mapping[str, Any], List[_Record]] = None) -> int:
        """Adds a node and returns its id: one more than the last, from 0, unless given.

        type is a number or a name ("COMP_NODE"); deps are ids of nodes whose data it needs.  attrs are values by name,
        or orrery.Value(member, value) where the member of the schema matters.
        """
        if isinstance(type, str) and type not in NODE_TYPES:
            raise Error(f"there is no node type '{type}'; there are {', '.join(NODE_TYPES)}")
        number = NODE_TYPES[type] if isinstance(type, str) else int(type)
        node = self._next if id is None else id
        records = attrs if isinstance(attrs, list) else [_record(k, v) for k, v in (attrs or {}).items()]
        self._add(node, name, number, deps, ctrl_deps, int(start_us), int(duration_us), inputs, outputs, records)
        self._next = node + 1
        return node

    def compute(self, name: str = "compute", *, num_ops: float = 0, tensor_size: int = 0, duration_us: int = 0,
                deps: Iterable[int] = (), attrs: Optional[Mapping[str, Any]] = None, **more: Any) -> int:
        """Adds a compute node: num_ops operations on tensor_size bytes, or a recorded duration."""
        own: Dict[str, Any] = {"is_cpu_op": False}
        if num_ops:
            own["num_ops"] = int(num_ops)
        if tensor_size:
            own["tensor_size"] = int(tensor_size)
        own.update(attrs or {})
        return self.add(name, "COMP_NODE", deps=deps, duration_us=duration_us, attrs=own, **more)

    def collective(self, kind: Union[int, str], size: int, *, name: str = "", group: Union[None, int, str] = None,
                   deps: Iterable[int] = (), attrs: Optional[Mapping[str, Any]] = None, **more: Any) -> int:
        """Adds a collective of size bytes: "ALL_REDUCE", "ALL_GATHER", ...  group: of the set; None: all ranks."""
        if isinstance(kind, str) and kind.upper().replace("-", "_") not in COLLECTIVES:
            raise Error(f"there is no collective '{kind}'; there are {', '.join(COLLECTIVES)}")
        number = COLLECTIVES[kind.upper().replace("-", "_")] if isinstance(kind, str) else int(kind)
        own: Dict[str, Any] = {"is_cpu_op": False, "comm_type": number, "comm_size": int(size)}
        if group is not None:
            own["pg_name"] = str(group)
        own.update(attrs or {})
        return self.add(name or str(kind), "COMM_COLL_NODE", deps=deps, attrs=own, **more)

    def send(self, dst: int, size: int, *, tag: int = 0, src: Optional[int] = None, name: str = "send",
             deps: Iterable[int] = (), attrs: Optional[Mapping[str, Any]] = None, **more: Any) -> int:
        """Adds a message of size bytes to rank dst."""
        return self._message("COMM_SEND_NODE", name, src, dst, size, tag, deps, attrs, more)

    def recv(self, src: int, size: int, *, tag: int = 0, dst: Optional[int] = None, name: str = "recv",
             deps: Iterable[int] = (), attrs: Optional[Mapping[str, Any]] = None, **more: Any) -> int:
        """Adds the receipt of a message of size bytes from rank src."""
        return self._message("COMM_RECV_NODE", name, src, dst, size, tag, deps, attrs, more)

    def _message(self, type: str, name: str, src: Optional[int], dst: Optional[int], size: int, tag: int,
                 deps: Iterable[int], attrs: Optional[Mapping[str, Any]], more: Dict[str, Any]) -> int:
        own: Dict[str, Any] = {"is_cpu_op": False, "comm_size": int(size), "comm_tag": int(tag)}
        if src is not None:
            own["comm_src"] = int(src)
        if dst is not None:
            own["comm_dst"] = int(dst)
        own.update(attrs or {})
        return self.add(name, type, deps=deps, attrs=own, **more)

    # -- looking

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> List[Node]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Node, List[Node]]:
        if isinstance(index, slice):
            return [super(Trace, self).__getitem__(i) for i in range(*index.indices(len(self)))]
        at = operator.index(index)  # accepts NumPy integers too
        return super().__getitem__(at + len(self) if at < 0 else at)

    @property
    def columns(self) -> Columns:
        """NumPy arrays of all nodes, without copying: t.columns["comm_size"]."""
        return Columns(self)

    @property
    def groups(self) -> List[str]:
        """Names of process groups; the column pg_name has indices into this list."""
        return self._texts()

    def frame(self, library: str = "pandas", columns: Optional[Sequence[str]] = None) -> Any:
        """A data frame, one row per node.  library: "pandas" or "polars".

        Attributes that no node has are left out unless requested.  If only some nodes have one, the column has nullable
        integers in pandas and nulls in polars.
        """
        numpy = _numpy()
        if numpy is None:
            raise Error("a data frame needs NumPy")
        every = ["id", "name", "type", "start_us", "duration_us",
                 *(c for c in _core.COLUMNS if c not in ("id", "type", "start_us", "duration_us"))]
        data: Dict[str, Any] = {}
        for name in columns or every:
            data[name] = self._frame_column(numpy, name, bool(columns))
        data = {name: column for name, column in data.items() if column is not None}
        if library == "polars":
            import polars  # type: ignore
            return polars.DataFrame({n: (polars.Series(n, c[0]).set(polars.Series(c[1]), None)
                                         if isinstance(c, tuple) else c) for n, c in data.items()})
        if library != "pandas":
            raise Error(f"there is no frame of '{library}'; there are pandas and polars")
        import pandas  # type: ignore
        return pandas.DataFrame({n: pandas.array(pandas.arrays.IntegerArray(numpy.array(c[0], dtype="int64"), c[1]))
                                 if isinstance(c, tuple) else c for n, c in data.items()})

    def _frame_column(self, numpy: Any, name: str, keep: bool) -> Any:
        """Values; or (values, mask) if some are missing; None: no node has it."""
        if name == "name":
            return self.names()
        column = self.columns[name]
        if name == "type":
            words = {number: word for word, number in NODE_TYPES.items()}
            return [words.get(number, str(number)) for number in column.tolist()]
        if name == "pg_name":
            if not keep and (column == 0xFFFFFFFF).all():
                return None
            texts = self.groups
            return [None if number == 0xFFFFFFFF else texts[number] for number in column.tolist()]
        if column.dtype.kind == "u":
            return column
        missing = column == (-1 if column.dtype == numpy.int8 else NO_VALUE)
        if not keep and missing.all():
            return None
        return (column, missing) if missing.any() else column

    def write(self, path: Path, *, schema: Optional[str] = None) -> None:
        """Writes an .et file; .gz and .zst are compressed.  schema: an older generation ("0.0.3", "eg")."""
        self._write(os.fspath(path), schema)

    def __repr__(self) -> str:
        if self.is_open:
            return "<orrery.Trace, being built>"
        return f"<orrery.Trace of {len(self):,} nodes{f' from {self.path}' if self.path else ''}>"


# ---- sets ----

class Finding:
    """One error, warning or note about traces, with its location."""

    __slots__ = ("kind", "severity", "text", "path", "byte", "rank", "rank_count", "node", "name")
    kind: str
    severity: str
    text: str
    path: str
    byte: Optional[int]
    rank: Optional[int]
    rank_count: int
    node: Optional[int]
    name: Optional[str]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        for name in self.__slots__:
            setattr(self, name, fields[name])

    def __repr__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        node = f"node {self.node}: " if self.node is not None else ""
        return f"<{self.severity} {self.kind}: {place}{node}{self.text}>"


class Check:
    """The result of orrery.check; true if there are no errors."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.findings: List[Finding] = [Finding(f) for f in report["findings"]]
        self.counts: Dict[str, int] = report["counts"]
        self.errors: int = report["errors"]
        self.warnings: int = report["warnings"]
        self.notes: int = report["notes"]
        self.ranks: int = report["ranks"]
        self.nodes: int = report["nodes"]

    def __bool__(self) -> bool:
        return self.errors == 0

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __repr__(self) -> str:
        return f"<orrery.Check of {self.ranks} ranks, {self.nodes:,} nodes: {self.errors} errors, " \
               f"{self.warnings} warnings>"


class Set(_core.Set):
    """The traces of all ranks of a job.  Equal ranks are stored once.

    len(s) is the number of ranks, s[r] the trace of rank r, and `for trace in s` iterates over them.
    """

    __slots__ = ("facts",)
    facts: Dict[str, Any]
    """What is known of how it was made (orrery.stage, orrery.link); else empty."""

    def __new__(cls, traces: Iterable[Trace] = (), groups: Optional[Mapping[int, Sequence[int]]] = None) -> "Set":
        """A set of these traces, one per rank; groups: process groups, number to ranks."""
        made: "Set" = _core.new_set(cls)
        made.facts = {}
        for trace in traces:
            made._add(trace)
        for number, ranks in sorted((groups or {}).items()):
            made._add_group(int(number), [int(rank) for rank in ranks])
        return made

    @classmethod
    def _with(cls, made: "Set", facts: Optional[Dict[str, Any]] = None) -> "Set":
        made.facts = facts or {}
        return made

    @overload
    def __getitem__(self, rank: int) -> Trace: ...
    @overload
    def __getitem__(self, rank: slice) -> List[Trace]: ...

    def __getitem__(self, rank: Union[int, slice]) -> Union[Trace, List[Trace]]:
        if isinstance(rank, slice):
            return [self[i] for i in range(*rank.indices(len(self)))]
        at = operator.index(rank)
        if not -len(self) <= at < len(self):
            raise IndexError(f"there is no rank {at} in a set of {len(self)}")
        return self._trace(Trace, at % len(self))

    def __iter__(self) -> Iterator[Trace]:
        return (self[rank] for rank in range(len(self)))

    def nodes(self) -> Iterator[Tuple[int, Node]]:
        """(rank, node) of all nodes of all ranks, created on demand."""
        for rank, trace in enumerate(self):
            for node in trace:
                yield rank, node

    @property
    def groups(self) -> Dict[int, Tuple[int, ...]]:
        """Process groups: number to ranks."""
        return self._groups()

    @property
    def node_count(self) -> int:
        """Nodes of all ranks together."""
        return self._counts()[1]

    @property
    def distinct(self) -> int:
        """Number of distinct ranks, ignoring groups, peers and tags."""
        return self._counts()[0]

    @property
    def paths(self) -> List[str]:
        """The file of each rank."""
        return [path for _, path, _ in self._ranks()]

    @property
    def unreadable(self) -> Dict[int, str]:
        """With keep_going: why ranks could not be read."""
        return {rank: why for rank, (_, _, why) in enumerate(self._ranks()) if why}

    def frame(self, library: str = "pandas", columns: Optional[Sequence[str]] = None) -> Any:
        """The frames of all ranks, concatenated, with a column "rank"."""
        frames = []
        for rank, trace in enumerate(self):
            frame = trace.frame(library, columns)
            if library == "polars":
                import polars
                frames.append(frame.with_columns(polars.lit(rank).alias("rank")))
            else:
                frame.insert(0, "rank", rank)
                frames.append(frame)
        if library == "polars":
            return polars.concat(frames, how="diagonal")
        import pandas
        return pandas.concat(frames, ignore_index=True)

    def save(self, path: Path, *, compress: bool = False, schema: Optional[str] = None) -> None:
        """Writes one .orr file; or, for any other name, PREFIX.0.et, PREFIX.1.et, ... and groups as PREFIX.json."""
        text = os.fspath(path)
        if text.endswith(".orr"):
            self._save(text, "set", compress, None)
            return
        if compress:
            raise Error("compress is for .orr files")
        self._save(text, "files", False, schema)
        if self.groups:
            self._save(text + ".json", "groups", False, None)

    def check(self, limit: int = 10) -> Check:
        """Finds errors in the traces, across ranks; keeps at most limit findings of each kind."""
        return Check(self._check(limit))

    def __enter__(self) -> "Set":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            classes, nodes = self._counts()
        except Error:
            return "<orrery.Set, closed>"
        return f"<orrery.Set of {len(self):,} ranks, {classes:,} distinct, {nodes:,} nodes>"

    def _repr_html_(self) -> str:
        classes, nodes = self._counts()
        return f"<b>{len(self):,} ranks</b>, {classes:,} distinct, {nodes:,} nodes, {len(self.groups):,} groups"


def open(path: Path, *, keep_going: bool = False, keep_unknown: bool = False, threads: int = 0) -> Set:
    """Opens traces: a file, a prefix P of P.0.et, P.1.et, ..., a directory, or an .orr file.

    keep_going: a rank that cannot be read raises when it is accessed, not now.  keep_unknown: node types without a
    name are kept as numbers.  threads: 0 is one per core.
    """
    options = {"keep_going": keep_going, "keep_unknown": keep_unknown, "threads": threads}
    return Set._with(_core.open_set(Set, os.fspath(path), options))


def check(traces: Union[Path, Set], *, limit: int = 10) -> Check:
    """Finds errors in traces, across ranks.  Files that cannot be read are findings, not exceptions."""
    if isinstance(traces, Set):
        return traces.check(limit)
    with open(traces, keep_going=True, keep_unknown=True) as opened:
        return opened.check(limit)


def fix(path: Path, to: Path) -> Check:
    """Writes a repaired copy of traces; the result lists the changes."""
    return Check(_core.check_fix(os.fspath(path), os.fspath(to)))


def _encoded(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Options for the extension: texts and paths as bytes, without None."""
    out: Dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, (str, pathlib.PurePath)):
            out[name] = os.fsencode(value)
        elif value is not None:
            out[name] = value
    return out
