#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds banned functions: unsafe ones anywhere; those that end the process or print, in the library; memory and stdio
outside src/base.  cli prints no JSON by hand; SVG, HTML and result files are written only by src/views: folders below
it pass records."""

import re

import tree

EVERYWHERE = "atoi atol atof sprintf vsprintf strcpy strcat strtok rand srand gets alloca"
LIBRARY = "exit abort printf assert puts putchar setlocale"
ABOVE_BASE = "malloc calloc realloc free strdup strndup fopen fclose fread fwrite fprintf fputs fputc open mmap"
# Log files that are appended to and rotated, as in the replaced program: output.h writes only whole files.
APPENDS = {"src/compat/astra_sim/log_file.c"}


def pattern(names):
    return re.compile(r"(?<![\w.>])(" + "|".join(names.split()) + r")[ \t]*\(")


def rules(path):
    yield pattern(EVERYWHERE), "is not used here"
    if path.parts[0] == "src":
        yield pattern(LIBRARY), "is not for the library: input never ends the process, and it prints nothing"
        if path.parts[1] != "base" and str(path) not in APPENDS:
            yield pattern(ABOVE_BASE), "is for src/base only: memory.h, input.h and output.h stand in for it"
        if path.parts[1] in COMPUTE and str(path) not in BOTH_WAYS:
            yield pattern(WRITES), "writes text: src/views does that, this room hands over records"


# Folders that compute.  sources and trace write traces and schedules, which is their purpose.
COMPUTE = {"models", "run", "explain", "plan", "check", "sweep"}
WRITES = "orr_output_add orr_output_drain orr_output_save orr_json_writer_init"
# Formats read in the same folder; the database of a sweep, its lock and its cluster files.
BOTH_WAYS = {"src/models/network/topology/topology_write.c", "src/sweep/spec.c", "src/sweep/store.c",
             "src/sweep/sweep_cluster.c"}


JSON_BY_HAND = re.compile(r'\b(?:printf|fputs|puts)\(\s*"[^"\n]*\\"\w+\\" ?:')


MARKUP = re.compile(r'"<(?:svg|html|!DOCTYPE|rect|circle|path|text|table)\b')


def main():
    problems = []
    for path in tree.c_files("src", "cli"):
        text = tree.read(path) if path.parts[:2] != ("src", "views") else ""
        problems += [f"{path}:{text.count(chr(10), 0, m.start()) + 1}: markup: src/views writes SVG and HTML"
                     for m in MARKUP.finditer(text)]
    for path in tree.c_files("cli"):
        text = tree.read(path)
        problems += [f"{path}:{text.count(chr(10), 0, m.start()) + 1}: JSON by hand: use cli_json of cli/command.h"
                     for m in JSON_BY_HAND.finditer(text)]
    for path in tree.c_files():
        text = tree.code_only(tree.read(path))
        for find, words in rules(path):
            for match in find.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"{path}:{line}: {match.group(1)} {words}")
    tree.report(problems)


main()
