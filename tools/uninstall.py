#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""uninstall.py BUILD [DESTDIR]: remove what `make install` wrote, by the build's own list of what it installs.  Old
names are removed only if they are links to orrery, launchers or man pages of this project; empty folders are
removed."""

import json
import pathlib
import shutil
import subprocess
import sys


def installed(build):
    found = subprocess.run(["meson", "introspect", "--installed", build], capture_output=True, text=True, check=True)
    return sorted({pathlib.Path(path) for path in json.loads(found.stdout).values()})


def prefix_of(build):
    options = json.loads((build / "meson-info" / "intro-buildoptions.json").read_text())
    values = {option["name"]: option["value"] for option in options}
    prefix = pathlib.Path(values["prefix"])
    return {name: prefix / values[name] for name in ("bindir", "datadir", "mandir", "includedir")} | {"prefix": prefix}


def is_ours(path):
    """A link to orrery, the launcher of Python names, or a man page of an old name."""
    if path.is_symlink():
        return pathlib.Path(path.readlink()).name == "orrery"
    return path.is_file() and b"orrery" in path.read_bytes().lower()


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_if_empty(folder):
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def main():
    build, destdir = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""

    def at(path):
        return pathlib.Path(destdir + str(path)) if destdir else path

    places = prefix_of(build)
    names = subprocess.run([build / "cli" / "orrery_tables", "old-names"], capture_output=True, text=True,
                           check=True).stdout.split()
    for path in installed(build):
        remove(at(path))
    for name in names:
        for path in (places["bindir"] / name, places["prefix"] / "libexec/orrery" / name,
                     places["mandir"] / "man1" / f"{name}.1"):
            if is_ours(at(path)):
                at(path).unlink()
    modules = at(places["prefix"] / "libexec/orrery")
    for path in sorted(modules.rglob("*"), reverse=True):  # contents before their folder
        if (path.suffix == ".py" or path.name == "waf") and is_ours(path):
            path.unlink()
        elif path.name == "__pycache__":
            shutil.rmtree(path)
        remove_if_empty(path)
    for folder in (places["prefix"] / "libexec/orrery", places["includedir"] / "orrery",
                   places["datadir"] / "doc/orrery"):
        remove_if_empty(at(folder))


main()
