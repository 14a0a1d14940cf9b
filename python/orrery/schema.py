# SPDX-License-Identifier: Apache-2.0
"""The messages of .et files without protobuf, under the names that scripts use.

    from orrery.schema import encode_message, GlobalMetadata, Node, AttributeProto, COMM_COLL_NODE, ALL_REDUCE

    with open("step.0.et", "wb") as et:
        encode_message(et, GlobalMetadata(version="0.0.4"))
        node = Node(id=1, name="all-reduce", type=COMM_COLL_NODE)
        node.attr.append(AttributeProto(name="comm_type", int64_val=ALL_REDUCE))
        encode_message(et, node)

Reading: open_file_rd(path), then `while decode_message(et, node): ...`; a file from Python's open works as well.  The
messages have the protobuf interface that such scripts use: fields by name and as keywords, append, add and extend on
repeated fields, WhichOneof, HasField, CopyFrom, Clear, SerializeToString, ParseFromString.  docs/format/et.md has the
fields.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Generic, Iterable, Iterator, List, Optional, Tuple, Type, TypeVar

from . import _core
from ._error import Error
from ._trace import open as _open_set

_T = TypeVar("_T")


class _Repeated(List[_T], Generic[_T]):
    """A list with the method that protobuf adds."""

    def __init__(self, items: Iterable[_T] = (), make: Optional[Callable[..., _T]] = None) -> None:
        super().__init__(items)
        self._make = make

    def add(self, **fields: Any) -> _T:
        """Appends a new message with these fields and returns it."""
        if self._make is None:
            raise AttributeError("add is for messages; append a value")
        made = self._make(**fields)
        self.append(made)
        return made


class _Message:
    """Base of all messages: defaults, keywords, comparison."""

    __slots__: Tuple[str, ...] = ()
    _fields: Tuple[str, ...] = ()

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            if name not in self._fields:
                raise ValueError(f"{type(self).__name__} has no field '{name}'")
            if value is not None:
                self._give(name, value)

    def _give(self, name: str, value: Any) -> None:
        current = getattr(self, name)
        if isinstance(current, _Repeated):
            current[:] = value
        else:
            setattr(self, name, value)

    def Clear(self) -> None:
        """Resets every field."""
        for name in type(self).__slots__:
            if hasattr(type(self), name):
                try:
                    delattr(self, name)
                except AttributeError:
                    pass

    def CopyFrom(self, other: "_Message") -> None:
        """Becomes a copy of the other."""
        self.ParseFromString(other.SerializeToString())

    def SerializeToString(self) -> bytes:
        raise NotImplementedError

    def ParseFromString(self, record: bytes) -> int:
        raise NotImplementedError

    def ByteSize(self) -> int:
        """The size of its record in bytes."""
        return len(self.SerializeToString())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.SerializeToString() == other.SerializeToString()  # type: ignore

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields if getattr(self, name))
        return f"{type(self).__name__}({shown})"


# ---- attributes ----

class _List(_Message):
    """The values of a list attribute."""

    __slots__ = ("values",)
    _fields = ("values",)
    values: _Repeated[Any]

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.values = _Repeated(values)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.values == other.values  # type: ignore[attr-defined]


class DoubleList(_List):
    __slots__ = ()


class FloatList(_List):
    __slots__ = ()


class Int32List(_List):
    __slots__ = ()


class Int64List(_List):
    __slots__ = ()


class Uint32List(_List):
    __slots__ = ()


class Uint64List(_List):
    __slots__ = ()


class Sint32List(_List):
    __slots__ = ()


class Sint64List(_List):
    __slots__ = ()


class Fixed32List(_List):
    __slots__ = ()


class Fixed64List(_List):
    __slots__ = ()


class Sfixed32List(_List):
    __slots__ = ()


class Sfixed64List(_List):
    __slots__ = ()


class BoolList(_List):
    __slots__ = ()


class StringList(_List):
    __slots__ = ()


class BytesList(_List):
    __slots__ = ()


_LISTS: Dict[str, Type[_List]] = {f"{c.__name__[:-4].lower()}_list": c for c in _List.__subclasses__()}
_NOTHING: Dict[str, Any] = {"double": 0.0, "float": 0.0, "bool": False, "string": "", "bytes": b""}


class AttributeProto(_Message):
    """A named value: one of double_val, float_val, int32_val, ..., string_list, bytes_list."""

    __slots__ = ("name", "doc_string", "_member", "_value")
    _fields = ("name", "doc_string", *_core.MEMBERS)
    name: str
    doc_string: str
    _member: Optional[str]
    _value: Any

    def __init__(self, **fields: Any) -> None:
        self.name = ""
        self.doc_string = ""
        self._member = None
        self._value = None
        super().__init__(**fields)

    def __getattr__(self, name: str) -> Any:
        if name not in _core.MEMBERS:
            raise AttributeError(f"AttributeProto has no field '{name}'")
        if self._member == name:
            return self._value
        if name in _LISTS:  # reading it returns a list that becomes the value when something is added
            made = _LISTS[name]()
            made.values = _Filling(self, name, made)
            return made
        return _NOTHING.get(name[:-len("_val")], 0)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _core.MEMBERS:
            object.__setattr__(self, name, value)
            return
        if name in _LISTS and not isinstance(value, _List):
            raise TypeError(f"{name} is a message: {name}=…List(values=[...])")
        object.__setattr__(self, "_member", name)
        object.__setattr__(self, "_value", value)

    def WhichOneof(self, group: str) -> Optional[str]:
        """The member that is set, or None."""
        if group != "value":
            raise ValueError(f"AttributeProto has no group '{group}'")
        return self._member

    def HasField(self, name: str) -> bool:
        """Is this member set?"""
        return self._member == name

    def _record(self) -> Tuple[str, int, bool, Any, str]:
        if self._member is None:
            return self.name, 0, False, None, self.doc_string
        kind, is_list = _core.MEMBERS[self._member]
        return self.name, kind, is_list, list(self._value.values) if is_list else self._value, self.doc_string

    @classmethod
    def _of(cls, record: Tuple[str, int, bool, Any, str]) -> "AttributeProto":
        made = cls(name=record[0], doc_string=record[4])
        if record[1]:
            member = _MEMBER_NAMES[record[1], record[2]]
            setattr(made, member, _LISTS[member](record[3]) if record[2] else record[3])
        return made

    def SerializeToString(self) -> bytes:
        record = _attr_records([self])
        return _split(record)[0][1] if record else b""

    def ParseFromString(self, record: bytes) -> int:
        found = _core.decode_node(_ID_1 + b"\x52" + _varint(len(record)) + record)._records
        other = AttributeProto._of(found[0])
        for name in AttributeProto.__slots__:
            object.__setattr__(self, name, getattr(other, name))
        return len(record)


class _Filling(_Repeated[Any]):
    """The list of a member that is not set: adding the first item sets it."""

    def __init__(self, owner: AttributeProto, name: str, message: _List) -> None:
        super().__init__()
        self._owner, self._name, self._message = owner, name, message

    def append(self, item: Any) -> None:
        super().append(item)
        setattr(self._owner, self._name, self._message)

    def extend(self, items: Iterable[Any]) -> None:
        super().extend(items)
        setattr(self._owner, self._name, self._message)


_MEMBER_NAMES = {number: name for name, number in _core.MEMBERS.items()}


# ---- the parts of the wire format needed here ----

def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(record: bytes, at: int) -> Tuple[int, int]:
    number = shift = 0
    while at < len(record) and shift < 64:
        byte = record[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise Error("a number in the record has no end", code="input")


def _split(record: bytes) -> List[Tuple[int, bytes]]:
    """(tag, bytes) of the fields of a record with only texts and messages."""
    at, out = 0, []
    while at < len(record):
        tag, at = _read_varint(record, at)
        size, at = _read_varint(record, at)
        if tag & 7 != 2 or at + size > len(record):
            raise Error("the record is not metadata", code="input")
        out.append((tag, record[at:at + size]))
        at += size
    return out


def _attr_records(attrs: Iterable[AttributeProto]) -> bytes:
    """Attributes as encoded in a node: field 10."""
    return _core.encode_node(1, "", 0, (), (), 0, 0, None, None, [a._record() for a in attrs])[len(_ID_1):]


_ID_1 = b"\x08\x01"  # a node needs an id, the first field


# ---- messages of a file ----

class GlobalMetadata(_Message):
    """The first record of a file."""

    __slots__ = ("version", "attr")
    _fields = ("version", "attr")
    version: str
    attr: _Repeated[AttributeProto]

    def __init__(self, **fields: Any) -> None:
        self.version = ""
        self.attr = _Repeated((), AttributeProto)
        super().__init__(**fields)

    def Clear(self) -> None:
        self.version = ""
        self.attr = _Repeated((), AttributeProto)

    def SerializeToString(self) -> bytes:
        text = self.version.encode()
        head = b"\x0a" + _varint(len(text)) + text if text else b""
        return head + b"".join(b"\x12" + _varint(len(part)) + part for _, part in _split(_attr_records(self.attr)))

    def ParseFromString(self, record: bytes) -> int:
        parts = _split(record)
        self.version = next((part.decode() for tag, part in parts if tag == 0x0A), "")
        body = b"".join(b"\x52" + _varint(len(part)) + part for tag, part in parts if tag == 0x12)
        found = _core.decode_node(_ID_1 + body)._records if body else []
        self.attr = _Repeated([AttributeProto._of(r) for r in found], AttributeProto)
        return len(record)


class IOInfo(_Message):
    """Inputs or outputs of a node, as texts."""

    __slots__ = ("values", "shapes", "types")
    _fields = __slots__
    values: str
    shapes: str
    types: str

    def __init__(self, **fields: Any) -> None:
        self.values = self.shapes = self.types = ""
        super().__init__(**fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IOInfo) and self._texts() == other._texts()

    def _texts(self) -> Tuple[str, str, str]:
        return self.values, self.shapes, self.types


class Node(_Message):
    """One operation.  Fields of a node that was read are decoded on demand."""

    __slots__ = ("id", "name", "type", "ctrl_deps", "data_deps", "start_time_micros", "duration_micros", "inputs",
                 "outputs", "attr", "_from")
    _fields = __slots__[:-1]
    id: int
    name: str
    type: int
    ctrl_deps: _Repeated[int]
    data_deps: _Repeated[int]
    start_time_micros: int
    duration_micros: int
    inputs: IOInfo
    outputs: IOInfo
    attr: _Repeated[AttributeProto]
    _from: Optional[_core.Node]

    def __init__(self, **fields: Any) -> None:
        self._from = None
        super().__init__(**fields)

    def __getattr__(self, name: str) -> Any:
        make = _NODE_FIELDS.get(name)
        if make is None:
            raise AttributeError(f"Node has no field '{name}'")
        value = make(self._from)
        object.__setattr__(self, name, value)
        return value

    def _take(self, node: Optional[_core.Node]) -> None:
        for name in _NODE_FIELDS:
            try:
                object.__delattr__(self, name)
            except AttributeError:
                pass
        self._from = node

    def Clear(self) -> None:
        self._take(None)

    def HasField(self, name: str) -> bool:
        """Are inputs or outputs present?"""
        if name not in ("inputs", "outputs"):
            raise ValueError(f"the field '{name}' has no presence")
        return self._io(name) is not None

    def _io(self, name: str) -> Optional[Tuple[str, str, str]]:
        read = getattr(self._from, name) if self._from is not None else None
        texts: Tuple[str, str, str] = getattr(self, name)._texts()
        return texts if read is not None or any(texts) else None

    def SerializeToString(self) -> bytes:
        if not any(getattr(self, name) for name in self._fields if name not in ("inputs", "outputs")) and \
                not self._io("inputs") and not self._io("outputs"):
            return b""
        return _core.encode_node(self.id, self.name, int(self.type), self.data_deps, self.ctrl_deps,
                                 self.start_time_micros, self.duration_micros, self._io("inputs"), self._io("outputs"),
                                 [a._record() for a in self.attr])

    def ParseFromString(self, record: bytes) -> int:
        self._take(_core.decode_node(bytes(record)))
        return len(record)


def _io_message(read: Optional[Tuple[str, str, str]]) -> IOInfo:
    values, shapes, types = read or ("", "", "")
    return IOInfo(values=values, shapes=shapes, types=types)


_NODE_FIELDS: Dict[str, Callable[[Optional[_core.Node]], Any]] = {
    "id": lambda n: n.id if n is not None else 0,
    "name": lambda n: n.name if n is not None else "",
    "type": lambda n: n.type if n is not None else 0,
    "ctrl_deps": lambda n: _Repeated(n.ctrl_deps if n is not None else ()),
    "data_deps": lambda n: _Repeated(n.data_deps if n is not None else ()),
    "start_time_micros": lambda n: n.start_us if n is not None else 0,
    "duration_micros": lambda n: n.duration_us if n is not None else 0,
    "inputs": lambda n: _io_message(n.inputs if n is not None else None),
    "outputs": lambda n: _io_message(n.outputs if n is not None else None),
    "attr": lambda n: _Repeated([AttributeProto._of(r) for r in n._records] if n is not None else (), AttributeProto),
}


# ---- enumerations ----

class _Enum:
    """NodeType.Name(4), NodeType.Value("COMP_NODE"), NodeType.COMP_NODE."""

    def __init__(self, numbers: Dict[str, int]) -> None:
        self._numbers = numbers

    def Name(self, number: int) -> str:
        for name, found in self._numbers.items():
            if found == number:
                return name
        raise ValueError(f"{number} has no name")

    def Value(self, name: str) -> int:
        if name not in self._numbers:
            raise ValueError(f"there is no value '{name}'")
        return self._numbers[name]

    def keys(self) -> List[str]:
        return list(self._numbers)

    def values(self) -> List[int]:
        return list(self._numbers.values())

    def items(self) -> List[Tuple[str, int]]:
        return list(self._numbers.items())

    def __getattr__(self, name: str) -> int:
        try:
            return self._numbers[name]
        except KeyError:
            raise AttributeError(name) from None


NodeType = _Enum(_core.NODE_TYPES)
CollectiveCommType = _Enum(_core.COLLECTIVES)
(INVALID_NODE, METADATA_NODE, MEM_LOAD_NODE, MEM_STORE_NODE, COMP_NODE, COMM_SEND_NODE, COMM_RECV_NODE,
 COMM_COLL_NODE) = range(8)
(ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, SCATTER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK,
 BARRIER) = range(10)


# ---- files ----

class Reader:
    """A file whose records are read by the library: the result of open_file_rd."""

    def __init__(self, path: Any) -> None:
        try:
            self._trace = _open_set(path, keep_unknown=True)[0]
        except Error as e:
            if e.code == "io":
                raise FileNotFoundError(f"{path}: {e.message}") from e
            raise
        self._metadata = self._trace.has_metadata
        self._nodes: Iterator[_core.Node] = iter(self._trace)

    def _next(self, message: _Message) -> bool:
        if self._metadata:
            self._metadata = False
            if isinstance(message, GlobalMetadata):
                message.version = self._trace.version
                message.attr = _Repeated([AttributeProto._of(r) for r in self._trace._meta_records], AttributeProto)
                return True
        if not isinstance(message, Node):
            raise Error(f"{self._trace.path}: the next record is a node, not {type(message).__name__}", code="input")
        node = next(self._nodes, None)
        if node is None:
            return False
        message._take(node)
        return True

    def seek(self, offset: int) -> int:
        """Only to the start."""
        if offset:
            raise Error("a trace can only be read from its start")
        self._metadata = self._trace.has_metadata
        self._nodes = iter(self._trace)
        return 0

    def close(self) -> None:
        """Closes the file."""
        self._nodes = iter(())

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_file_rd(path: Any) -> Reader:
    """Opens a trace for decode_message: .et of any generation, plain or compressed."""
    return Reader(path)


def encode_message(file: Any, message: _Message) -> None:
    """Writes a message with its length before it."""
    record = message.SerializeToString()
    file.write(_varint(len(record)) + record)


def decode_message(file: Any, message: _Message) -> bool:
    """Reads the next message into this one; False: there is none."""
    if isinstance(file, Reader):
        return file._next(message)
    size = shift = 0
    while True:
        byte = file.read(1)
        if not byte:
            return False
        size |= (byte[0] & 127) << shift
        if byte[0] < 128:
            break
        shift += 7
        if shift >= 64:
            return False
    if not size:
        return False
    message.ParseFromString(file.read(size))
    return True


# The names that Chakra's scripts use.
encodeMessage, decodeMessage, openFileRd = encode_message, decode_message, open_file_rd
