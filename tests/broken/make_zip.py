#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/broken/zip and tests/fuzz/seeds/zip: small archives as every archiver writes them, and one lie in each.

    python3 tests/broken/make_zip.py"""

import io
import pathlib
import struct
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIME = (1980, 1, 1, 0, 0, 0)


class Stream(io.RawIOBase):
    """A file that cannot be wound back, so that sizes come behind the data."""

    def __init__(self):
        self.bytes = bytearray()

    def writable(self):
        return True

    def write(self, b):
        self.bytes += b
        return len(b)


def archive(files, method=zipfile.ZIP_DEFLATED, streamed=False, zip64=False):
    to = Stream() if streamed else io.BytesIO()
    with zipfile.ZipFile(to, "w") as z:
        for name, text in files.items():
            info = zipfile.ZipInfo(name, TIME)
            info.compress_type = method
            with z.open(info, "w", force_zip64=zip64) as f:
                f.write(text)
    return bytes(to.bytes) if streamed else to.getvalue()


def changed(data, at, new):
    return data[:at] + new + data[at + len(new):]


def with_names(name):
    return archive({"abcdefgh": b"x"}, zipfile.ZIP_STORED).replace(b"abcdefgh", name)


def bomb():
    """Says that it has 10 bytes and unpacks to 32 MiB."""
    data = archive({"zeros": bytes(32 << 20)})
    return data.replace(struct.pack("<I", 32 << 20), struct.pack("<I", 1 << 24))


def overlap():
    """Two records of the directory lead into the same bytes."""
    inner = archive({"inner": b"x" * 20}, zipfile.ZIP_STORED)[: 30 + 5 + 20]
    data = bytearray(archive({"outer": inner, "inner": b"x" * 20}, zipfile.ZIP_STORED))
    record = data.rindex(b"PK\1\2")
    struct.pack_into("<I", data, record + 42, 30 + 5)
    return bytes(data)


def main():
    files = {"model/models/model.json": b'{"graph": []}' * 5, "model/version": b"1"}
    good = {
        "stored": archive(files, zipfile.ZIP_STORED),
        "deflated": archive(files),
        "streamed": archive(files, streamed=True),
        "zip64": archive(files, zip64=True),
        "streamed64": archive(files, streamed=True, zip64=True),
        "empty": archive({}),
    }
    stored = good["stored"]
    record, end = stored.index(b"PK\1\2"), stored.index(b"PK\5\6")
    broken = {
        "nothing": b"",
        "cut_half": stored[: len(stored) // 2],
        "cut_one": stored[:-1],
        "one_more": stored + b"\0",
        "two_archives": stored + good["deflated"],
        "in_front": b"#!/bin/sh\n" + stored,
        "up": with_names(b"../abcde"),
        "up_inside": with_names(b"ab/../cd"),
        "absolute": with_names(b"/bcdefgh"),
        "drive": with_names(b"C:cdefgh"),
        "backslash": with_names(b"ab\\cdefg"),
        "nul": with_names(b"ab\0cdefg"),
        "escape": with_names(b"ab\x1b[2Jgh"),
        "not_utf8": with_names(b"ab\xff\xfeefgh"),
        "twice": archive({"aa": b"1", "ab": b"2"}, zipfile.ZIP_STORED).replace(b"ab", b"aa"),
        "overlap": overlap(),
        "bomb": bomb(),
        "crc": changed(stored, stored.index(b"graph"), b"g1aph"),
        "encrypted": changed(changed(stored, 6, b"\1\0"), record + 8, b"\1\0"),
        "method": changed(changed(stored, 8, b"\x0c\0"), record + 10, b"\x0c\0"),
        "size": changed(stored, record + 24, b"\xff\0\0\0"),
        "header": changed(stored, record + 42, b"\7\0\0\0"),
        "directory_beyond": changed(stored, end + 16, b"\xff\xff\xff\7"),
        "count": changed(stored, end + 8, b"\x09\0\x09\0"),
        "parts": changed(stored, end + 4, b"\1\0"),
        "deflate_damage": changed(good["deflated"], 60, b"\xff\xff\xff"),
        "zip64_locator": stored[:end] + struct.pack("<IIQI", 0x07064B50, 0, 1 << 60, 1) + stored[end:],
    }
    for folder, items in (("fuzz/seeds/zip", good), ("broken/zip", broken)):
        (ROOT / folder).mkdir(parents=True, exist_ok=True)
        for name, data in items.items():
            (ROOT / folder / (name + ".zip")).write_bytes(data)


main()
