#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One name, one thing.

    - No type of a header of src or cli has the name of another type: debuggers and tags do not know folders.  Types of
      a single .c file may share names (`writer`) with those of other .c files, but not with one of a header.
    - Attribute names of traces ("comm_size") are spelled in src/trace only (trace/attrs.h, trace/builder.h).
    - Times in the stable headers are orr_ps.  Members that are not, and why, are in OTHER_TIMES.
    - A citation of a specification names its file: `packet-network.md 4.3`, never a bare `(4.3)`; the section exists."""

import collections
import re

import tree

TAG = re.compile(r"\b(?:struct|union|enum)\s+(\w+)\s*\{")
POINTER = re.compile(r"\(\s*\*\s*(\w+)\s*\)")
LAST_NAME = re.compile(r"(\w+)\s*\([^{}]*\)\s*$|(\w+)(?:\[[^\]]*\])*\s*$")
CITATION = re.compile(r"\((\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)\)|\((\d{1,2}\.\d{1,2}), \d")
ATTRS = {"comm_size", "comm_src", "comm_dst", "comm_tag", "comm_type", "comm_priority", "comm_group", "is_cpu_op",
         "num_ops", "tensor_size", "tensor_loc", "involved_dim", "held_bytes"}
# Keys of PyTorch's host traces, some of which have the names of our attributes.
OTHER_FORMATS = {"linked_read.c"}


OTHER_TIMES = {
    ("network.h", "latency_ns"): "as the network file gives it: a fraction of a picosecond would be lost",
    ("run.h", "latency_ns"): "the same, of one dimension",
    ("network.h", "busy_ns"): "summed over a run, which may last longer than the 106 days of orr_ps",
    ("trace.h", "start_us"): "the field of a Chakra record",
    ("trace.h", "duration_us"): "the field of a Chakra record",
}


def types_of(path):
    """The type names that a file defines, each once."""
    text = re.sub(r"^[ \t]*#.*(?:\\\n.*)*", "", tree.code_only(tree.read(path)), flags=re.M)
    names = set(TAG.findall(text))
    for match in re.finditer(r"^typedef\b", text, re.M):
        at, depth = match.end(), 0
        while at < len(text) and (depth or text[at] != ";"):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        words = re.sub(r"\{.*\}", "", text[match.start():at].strip(), flags=re.S)
        if re.fullmatch(r"typedef\s+(?:struct|union|enum)\s+(\w+)\s+\1", words):
            continue  # the type is defined elsewhere
        match = POINTER.search(words) or LAST_NAME.search(words)
        names.add(next(name for name in match.groups() if name))
    return names


def check_types():
    places = collections.defaultdict(list)
    for path in tree.c_files("src", "cli", "include"):
        for name in types_of(path):
            places[name].append(path)
    for name, paths in sorted(places.items()):
        if len(paths) < 2 or all(path.suffix in (".c", ".cc") for path in paths):
            continue
        yield f"{paths[-1]}: the type {name} is defined in {', '.join(str(p) for p in paths[:-1])} as well"


def check_attrs():
    literal = re.compile(r'"(\w+)"')
    for path in tree.c_files("src"):
        if path.name in OTHER_FORMATS or path.parts[1] in ("trace", "views") or \
                path.parts[1:3] == ("compat", "et_legacy"):
            # keys of JSON files are their own; et_legacy is a format of trace/
            continue
        text = tree.code_only(tree.read(path), keep_strings=True)
        for match in literal.finditer(text):
            if match.group(1) in ATTRS:
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: \"{match.group(1)}\" is spelled in src/trace only: trace/attrs.h"


def check_citations():
    comment = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
    for path in tree.c_files("src", "cli", "include"):
        text = tree.read(path)
        for block in comment.finditer(text):
            if re.search(r"\w\.md", block.group(0)):
                continue
            for match in CITATION.finditer(block.group(0)):
                line = text.count("\n", 0, block.start() + match.start()) + 1
                yield f"{path}:{line}: {match.group(0)} names no file"


def check_sections():
    """docs/spec has each section that is cited; `goal.md 3.3, 3.4 and 3.6` cites three."""
    cited = re.compile(r"\b([\w-]+\.md)((?:(?:,| and|,? to)? (?:\d+(?:\.\d+)+|\d+(?=[^\w.%]|\.?$)))+)")
    sections = {path.name: set(re.findall(r"^#+ (\d+(?:\.\d+)*)\b", tree.read(path), re.M))
                for path in tree.files() if path.parts[:2] == ("docs", "spec")}
    for path in tree.c_files("src", "cli", "include", "tests"):
        for block in re.finditer(r"/\*.*?\*/", tree.read(path), re.S):
            words = re.sub(r"\s*\n\s*\*?\s*", " ", block.group(0).removesuffix("*/").strip())
            for match in cited.finditer(words):
                for section in re.findall(r"\d+(?:\.\d+)*", match.group(2)):
                    if match.group(1) in sections and section not in sections[match.group(1)]:
                        yield f"{path}: {match.group(1)} has no section {section}"


def check_times():
    member = re.compile(r"\b(\w+_(?:ns|us|ms|s|seconds))\b(?=\s*(?:[;,=]|\[))")
    used = set()
    for path in tree.c_files("include"):
        if path.parent.name != "orrery" or path.suffix != ".h":
            continue
        text = tree.code_only(tree.read(path))
        for match in member.finditer(text):
            used.add((path.name, match.group(1)))
            if (path.name, match.group(1)) not in OTHER_TIMES and match.group(1) not in ("max_seconds", "used_seconds"):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: {match.group(1)}: times in stable headers are orr_ps"
    for name in sorted(OTHER_TIMES.keys() - used):
        yield f"tools/check_names.py: OTHER_TIMES has {name[1]}, which {name[0]} lacks"


def main():
    tree.report(sorted([*check_types(), *check_attrs(), *check_citations(), *check_sections(), *check_times()]))


main()
