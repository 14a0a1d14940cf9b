#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every reader of untrusted input has a fuzz target: tests/fuzz/readers.txt names it, or says why there is
none.

A reader is a file of src or cli that calls one of the functions below.  A line for a file that reads nothing, or with a
missing target, is an error too."""

import re

import tree

OPENS = re.compile(r"\b(orr_input_open|orr_input_of_stream|orr_stream_open|orr_json_open|orr_yaml_open|orr_ini_open|"
                   r"orr_sqlite_(?:open|edit|watch)|orr_zip_open|orr_xml_open|orr_csv_init|getline|fgets|fread|pread|recv|"
                   r"read(?=\s*\(\s*[\w>-]*fd\b))\s*\(")
READS = re.compile(r'\bfopen\s*\([^;]*"r')
LIST = "tests/fuzz/readers.txt"


def readers():
    found = set()
    for path in tree.c_files("src", "cli"):
        if path.suffix == ".h":
            continue
        text = tree.code_only(tree.read(path), keep_strings=True)
        if OPENS.search(re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)) or READS.search(text):
            found.add(str(path))
    return found


def listed():
    lines = {}
    for line in tree.read(LIST).splitlines():
        if line and not line.startswith("#"):
            path, _, targets = line.partition(": ")
            lines[path] = targets.strip()
    return lines


def main():
    problems = []
    targets = {path.stem[len("fuzz_"):] for path in tree.files() if re.match(r"tests/fuzz/fuzz_\w+\.c$", str(path))}
    found, known = readers(), listed()
    for path in sorted(found - known.keys()):
        problems.append(f"{path}: reads what others wrote; which fuzz target reaches it belongs into {LIST}")
    for path in sorted(known.keys() - found):
        problems.append(f"{LIST}: {path} reads nothing, or is gone")
    for path, names in known.items():
        if names.startswith("- ") and names[2:].strip():
            continue
        for name in names.split(", "):
            if name not in targets:
                problems.append(f"{LIST}: {path}: there is no fuzz target '{name}'")
    tree.report(problems)


main()
