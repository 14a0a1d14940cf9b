# SPDX-License-Identifier: Apache-2.0
"""The build backend that pip calls: meson-python, which then corrects the wheel's tag.

meson-python names a wheel after the Python that built it (cp311-abi3).  The extension always uses the limited API of
the version in FIRST, so the wheel works with that version and all later ones.
"""

import base64
import hashlib
import os
import pathlib
import re
import zipfile

import mesonpy
from mesonpy import build_sdist, get_requires_for_build_sdist, get_requires_for_build_wheel  # noqa: F401

FIRST = "cp39"  # python/meson.build: Py_LIMITED_API


def _record_line(line, name, data):
    if line.split(",")[0] != name:
        return line
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def _retagged(name):
    return re.sub(r"-cp3\d+-abi3-", f"-{FIRST}-abi3-", name)


def _retag(folder, name):
    """Rename the wheel; the tag inside it and that file's checksum change too."""
    wanted = _retagged(name)
    if wanted == name:
        return name
    before, after = pathlib.Path(folder, name), pathlib.Path(folder, wanted)
    with zipfile.ZipFile(before) as old, zipfile.ZipFile(after, "w", zipfile.ZIP_DEFLATED) as new:
        tags = next(n for n in old.namelist() if n.endswith(".dist-info/WHEEL"))
        record = next(n for n in old.namelist() if n.endswith(".dist-info/RECORD"))
        text = re.sub(r"(?m)^(Tag: )cp3\d+-abi3-", rf"\g<1>{FIRST}-abi3-", old.read(tags).decode()).encode()
        lines = [_record_line(line, tags, text) for line in old.read(record).decode().splitlines()]
        changed = {tags: text, record: ("\n".join(lines) + "\n").encode()}
        for item in old.infolist():
            new.writestr(item, changed.get(item.filename) or old.read(item), zipfile.ZIP_DEFLATED)
    os.unlink(before)
    return wanted


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _retag(wheel_directory, mesonpy.build_wheel(wheel_directory, config_settings, metadata_directory))
