# SPDX-License-Identifier: Apache-2.0
"""Reader and writer of Chakra execution traces (.et): astra-sim.md section 2.  Standard library only.

A trace is a list of Node.  Attribute values are plain Python values: bool, int, float, str, bytes or a list
of one of these.  When writing, an int is stored as int64; give ("uint32", 7) to choose another representation.
"""
import os
import struct
from dataclasses import dataclass, field

INVALID, METADATA, MEM_LOAD, MEM_STORE, COMP, COMM_SEND, COMM_RECV, COMM_COLL = range(8)
COLLECTIVE_TYPES = {"ALL_REDUCE": 0, "REDUCE": 1, "ALL_GATHER": 2, "GATHER": 3, "SCATTER": 4, "BROADCAST": 5,
                    "ALL_TO_ALL": 6, "REDUCE_SCATTER": 7, "REDUCE_SCATTER_BLOCK": 8, "BARRIER": 9}

# Field number of each scalar attribute kind; the list form has the next number.
KIND_FIELDS = {"double": 3, "float": 5, "int32": 7, "int64": 9, "uint32": 11, "uint64": 13, "sint32": 15, "sint64": 17,
               "fixed32": 19, "fixed64": 21, "sfixed32": 23, "sfixed64": 25, "bool": 27, "string": 29, "bytes": 31}
FIELD_KINDS = {number: kind for kind, number in KIND_FIELDS.items()}
FIXED_FORMATS = {"double": "<d", "float": "<f", "fixed32": "<I", "fixed64": "<Q", "sfixed32": "<i", "sfixed64": "<q"}
VARINT, EIGHT_BYTES, DELIMITED, FOUR_BYTES = 0, 1, 2, 5


@dataclass
class Node:
    id: int = 0
    type: int = INVALID
    name: str = ""
    ctrl_deps: list = field(default_factory=list)
    data_deps: list = field(default_factory=list)
    duration_micros: int = 0
    attrs: dict = field(default_factory=dict)


# ---- wire format: reading ---------------------------------------------------------------------------------------

def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (1 << 64) - 1, at
        shift += 7


def read_fields(data):
    """(field number, value) pairs; the value is an int (varint) or bytes."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = read_varint(data, at)
        else:
            if wire == DELIMITED:
                size, at = read_varint(data, at)
            else:
                size = {EIGHT_BYTES: 8, FOUR_BYTES: 4}[wire]
            value, at = data[at:at + size], at + size
        yield number, value


def read_packed(value):
    """A repeated varint field: one int, or bytes when packed."""
    if isinstance(value, int):
        return [value]
    values, at = [], 0
    while at < len(value):
        item, at = read_varint(value, at)
        values.append(item)
    return values


def decode_scalar(kind, raw):
    if kind in FIXED_FORMATS:
        return struct.unpack(FIXED_FORMATS[kind], raw)[0]
    if kind == "bool":
        return bool(raw)
    if kind in ("string", "bytes"):
        return raw.decode() if kind == "string" else raw
    if kind in ("sint32", "sint64"):
        return (raw >> 1) ^ -(raw & 1)
    if kind in ("int32", "int64"):
        return raw - (1 << 64) if raw >> 63 else raw
    return raw


def decode_list(kind, message):
    values = []
    for number, raw in read_fields(message):
        if number != 1:
            continue
        if kind in FIXED_FORMATS:
            width = struct.calcsize(FIXED_FORMATS[kind])
            values += [decode_scalar(kind, raw[i:i + width]) for i in range(0, len(raw), width)]
        elif kind in ("string", "bytes"):
            values.append(decode_scalar(kind, raw))
        else:
            values += [decode_scalar(kind, item) for item in read_packed(raw)]
    return values


def decode_attribute(message):
    name, value = "", None
    for number, raw in read_fields(message):
        if number == 1:
            name = raw.decode()
        elif number in FIELD_KINDS:
            value = decode_scalar(FIELD_KINDS[number], raw)
        elif number - 1 in FIELD_KINDS:
            value = decode_list(FIELD_KINDS[number - 1], raw)
    return name, value


def decode_node(message):
    node = Node()
    for number, value in read_fields(message):
        if number == 1:
            node.id = value
        elif number == 2:
            node.name = value.decode()
        elif number == 3:
            node.type = value
        elif number == 4:
            node.ctrl_deps += read_packed(value)
        elif number == 5:
            node.data_deps += read_packed(value)
        elif number == 7:
            node.duration_micros = value
        elif number == 10:
            name, attribute = decode_attribute(value)
            node.attrs.setdefault(name, attribute)      # the first attribute with a name wins
    return node


def read_trace(path):
    """All nodes in file order; the leading GlobalMetadata message is skipped."""
    with open(path, "rb") as file:
        data = file.read()
    messages, at = [], 0
    while at < len(data):
        size, at = read_varint(data, at)
        messages.append(data[at:at + size])
        at += size
    return [decode_node(message) for message in messages[1:]]


# ---- wire format: writing ---------------------------------------------------------------------------------------

def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def scalar_field(number, value):
    return varint(number << 3 | VARINT) + varint(value)


def delimited_field(number, data):
    return varint(number << 3 | DELIMITED) + varint(len(data)) + data


def attribute_kind(value):
    for python_type, kind in ((bool, "bool"), (int, "int64"), (float, "double"), (str, "string"), (bytes, "bytes")):
        if isinstance(value, python_type):
            return kind
    raise TypeError("no attribute kind for %r" % (value,))


def encode_attribute(name, value):
    kind, value = value if isinstance(value, tuple) else (None, value)
    out = delimited_field(1, name.encode())
    if isinstance(value, list):
        kind = kind or attribute_kind(value[0])
        if kind == "string":
            body = b"".join(delimited_field(1, item.encode()) for item in value)
        else:
            body = delimited_field(1, b"".join(varint(int(item)) for item in value))
        return out + delimited_field(KIND_FIELDS[kind] + 1, body)
    kind = kind or attribute_kind(value)
    number = KIND_FIELDS[kind]
    if kind in FIXED_FORMATS:
        packed = struct.pack(FIXED_FORMATS[kind], value)
        return out + varint(number << 3 | (EIGHT_BYTES if len(packed) == 8 else FOUR_BYTES)) + packed
    if kind in ("string", "bytes"):
        return out + delimited_field(number, value.encode() if kind == "string" else value)
    if kind in ("sint32", "sint64"):
        return out + scalar_field(number, value * 2 if value >= 0 else -value * 2 - 1)
    return out + scalar_field(number, int(value))


def encode_node(node):
    out = scalar_field(1, node.id) + delimited_field(2, (node.name or "n%d" % node.id).encode())
    out += scalar_field(3, node.type)
    for number, deps in ((4, node.ctrl_deps), (5, node.data_deps)):
        if deps:
            out += delimited_field(number, b"".join(map(varint, deps)))
    if node.duration_micros:
        out += scalar_field(7, node.duration_micros)
    for name, value in node.attrs.items():
        out += delimited_field(10, encode_attribute(name, value))
    return out


def write_trace(path, nodes):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        for message in [delimited_field(1, b"0.0.4")] + [encode_node(node) for node in nodes]:
            file.write(varint(len(message)) + message)
