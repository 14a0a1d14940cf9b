#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the broken traces of tests/broken/et and knows what 'orrery check' must say of each.

    tests/broken/make_et.py [FOLDER]

TABLE has a row a file: its name, its bytes, the exit status, the kind of the first finding and the byte it
names (None: no byte).  Every file starts with the same metadata record of 8 bytes unless its row says
otherwise, so the first node is at byte 8; the other places are counted in the comments."""

import gzip
import pathlib
import sys

META = b"\x07\x0a\x05" + b"1.0.0"  # 8 bytes
COMP, SEND, RECV, COLL, LOAD = 4, 5, 6, 7, 2


def varint(n):
    out = b""
    n &= (1 << 64) - 1
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """A varint field for an integer, a length-delimited one for bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def record(body):
    return varint(len(body)) + body


def attr(name, member, value):
    return field(10, field(1, name.encode()) + field(member, value))


def node(number, type_=COMP, data=(), ctrl=(), attrs=b"", name=b"n"):
    """Without dependencies and attributes: 8 bytes."""
    body = field(1, number) + field(2, name) + field(3, type_)
    for f, ids in ((4, ctrl), (5, data)):
        if ids:
            body += field(f, b"".join(varint(i) for i in ids))
    return record(body + attrs)


INT64, STRING = 9, 29
TYPE, SIZE = attr("comm_type", INT64, 0), attr("comm_size", INT64, 64)
SOUND = META + node(1) + node(2, data=[1])  # 8 + 8 + 11 = 27 bytes


def nested(depth):
    """Groups (field 15) in groups; nobody needs that many."""
    return record(b"\x08\x01" + b"\x7b" * depth + b"\x7c" * depth)


TABLE = [
    # Bytes that are no trace.
    ("empty", b"", 3, "damaged-file", 0),
    ("cut_in_length", SOUND + b"\x80", 3, "damaged-file", 27),
    ("cut_in_record", SOUND + node(3)[:-2], 3, "damaged-file", 27),
    ("cut_in_metadata", META[:5], 3, "damaged-file", 0),
    ("length_too_large", SOUND + varint(1 << 62) + b"x", 3, "damaged-file", 27),
    ("length_without_end", SOUND + b"\xff" * 12, 3, "damaged-file", 27),
    ("zero_length_node", SOUND + b"\x00" + node(3), 3, "damaged-file", 27),
    # 8: length; 9: id, 2 bytes; 11: name, tag and length; 13: its text.
    ("name_not_utf8", META + node(1, name=b"\xff"), 3, "damaged-file", 13),
    # 14: the type, behind id (2) and name (3).
    ("type_unknown", META + node(1, type_=11), 3, "damaged-file", 14),
    ("name_is_number", META + record(field(1, 1) + field(2, 5)), 3, "damaged-file", 11),
    ("id_is_text", META + record(field(1, b"one")), 3, "damaged-file", 9),
    ("field_number_zero", META + record(field(1, 1) + b"\x00\x00"), 3, "damaged-file", 11),
    ("wire_type_seven", META + record(field(1, 1) + b"\x0f"), 3, "damaged-file", 11),
    ("field_past_record", META + record(field(1, 1) + b"\x12\x7fn"), 3, "damaged-file", 12),
    ("number_too_long", META + record(b"\x08" + b"\xff" * 11), 3, "damaged-file", 10),
    ("deps_cut", META + record(field(1, 1) + field(5, b"\x01\x80")), 3, "damaged-file", 14),
    # 9: id; 11: attribute, tag and length; 13: its name, tag and length; 15: "x"; 16: int64_val as bytes.
    ("attr_wrong_wire", META + record(field(1, 1) + field(10, field(1, b"x") + field(9, b"1"))), 3, "damaged-file", 16),
    ("list_wrong_item", META + record(field(1, 1) + field(10, field(1, b"x") + field(28, b"\x0d\x01\x00\x00\x00"))),
     3, "damaged-file", 19),
    ("groups_too_deep", META + nested(1000), 3, "damaged-file", None),
    ("gzip_cut", gzip.compress(SOUND * 4, mtime=0)[:-12], 3, "damaged-file", None),
    ("gzip_damaged", gzip.compress(SOUND, mtime=0)[:-8] + b"\x00" * 8, 3, "damaged-file", None),
    ("not_a_trace", b"GIF89a\x01\x00\x01\x00\x80\x00\x00", 3, "damaged-file", None),
    ("json_cut", b'{"format": "orrery-trace", "version": 1, "nodes": [{"id": "1"', 3, "damaged-file", None),
    # Graphs that cannot run.
    ("missing_parent", META + node(1) + node(2, data=[1, 99]), 1, "missing-parent", 16),
    ("missing_control_parent", META + node(1) + node(2, ctrl=[99]), 0, "missing-control-parent", 16),
    ("self_dependency", META + node(1) + node(2, data=[2]), 1, "self-dependency", 16),
    ("listed_twice", META + node(1) + node(2, data=[1, 1]), 0, "duplicate-dependency", 16),
    ("same_id", META + node(1) + node(2) + node(1), 1, "duplicate-id", 8),
    ("cycle_of_two", META + node(1, data=[2]) + node(2, data=[1]), 1, "cycle", 8),
    ("cycle_through_control", META + node(1) + node(2, ctrl=[3]) + node(3, data=[2]), 1, "cycle", 16),
    # Attributes.
    ("size_is_text", META + node(1, COLL, attrs=TYPE + attr("comm_size", STRING, b"64")), 1, "attribute-kind", 8),
    ("size_negative", META + node(1, COLL, attrs=TYPE + attr("comm_size", INT64, -1)), 1, "bad-value", 8),
    ("size_of_2_64", META + node(1, COLL, attrs=TYPE + attr("comm_size", 13, (1 << 64) - 1)), 1, "bad-value", 8),
    ("collective_unknown", META + node(1, COLL, attrs=attr("comm_type", INT64, 42) + SIZE), 1, "bad-value", 8),
    ("collective_without_type", META + node(1, COLL, attrs=SIZE), 1, "missing-attribute", 8),
    ("collective_without_size", META + node(1, COLL, attrs=TYPE), 1, "missing-attribute", 8),
    ("send_without_peer", META + node(1, SEND, attrs=SIZE), 0, "missing-peer", 8),
    ("send_to_minus_one", META + node(1, SEND, attrs=SIZE + attr("comm_dst", INT64, -1)), 1, "peer-range", 8),
    ("load_without_size", META + node(1, LOAD), 0, "missing-size", 8),
    ("stream_is_text", META + node(1, attrs=attr("stream", STRING, b"7")), 0, "odd-attribute", 8),
    ("attribute_twice", META + node(1, COLL, attrs=TYPE + SIZE + SIZE), 0, "duplicate-attribute", 8),
    ("invalid_node", META + record(field(1, 1) + field(2, b"n")), 0, "invalid-node", 8),
    ("no_nodes", META, 0, "no-nodes", None),
]


def file_name(name):
    return name + (".json" if name.startswith("json") else ".et.gz" if name.startswith("gzip") else ".et")


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("et")
    folder.mkdir(exist_ok=True)
    for name, content, *_ in TABLE:
        (folder / file_name(name)).write_bytes(content)


if __name__ == "__main__":
    main()
