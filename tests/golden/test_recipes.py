#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows CONTRIBUTING's recipes "add a view" and "add a command" to the letter: a new file, a row in a table, and the
new name is in help, completion and error messages.  Only the files a recipe touches are compiled; the rest comes from
the build.  (A test of the table of collectives is unit/test_collective_table.)"""

import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT, BUILD = pathlib.Path(os.environ["ORR_ROOT"]), pathlib.Path(os.environ["ORR_BUILD"])
HERE = pathlib.Path.cwd()

EDGES_C = """
#include "base/io/output.h"
#include <orrery/trace.h>
#include <inttypes.h>
orr_code orr_view_edges(const orr_trace *t, const char *path, orr_error *err);
orr_code orr_view_edges(const orr_trace *t, const char *path, orr_error *err)
{
    const orr_columns *c = orr_trace_columns(t);
    orr_buf b = {0};
    orr_buf_text(&b, "parent,child\\n");
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t e = c->data_first[i]; e < c->data_first[i + 1]; e++)
            orr_buf_print(&b, "%" PRIu64 ",%" PRIu64 "\\n", c->id[c->data_dep[e]], c->id[i]);
    const orr_code code = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    return code;
}
"""
VIEW_FUNCTION = """
orr_code orr_view_edges(const orr_trace *t, const char *path, orr_error *err);
static orr_code view_edges(const cli_context *c, const orr_trace *t, uint64_t id_shift, orr_error *err)
{
    (void)id_shift;
    return orr_view_edges(t, cli_text(c, "output"), err);
}

"""
HELLO_C = """
#include "command.h"
static orr_code hello_run(cli_context *c, orr_error *err)
{
    (void)c;
    (void)err;
    puts("hello");
    return ORR_OK;
}
const cli_command cli_cmd_hello = {.name = "hello", .summary = "say hello", .run = hello_run};
"""


def commands():
    """Source file -> how the build compiles it."""
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        words = shlex.split(entry["command"])
        if "ccache" in words[0]:
            words = words[1:]
        if "-fPIC" in words or "cli/orrery.p" in entry["output"]:
            found.setdefault(path, words)
    return found


def compile_as(like, source, output, first_include):
    """Compile source as the build compiles the file `like`."""
    words, out, skip = commands()[(ROOT / like).resolve()], [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MQ"):
            skip = True
        elif word not in ("-c", "-MD") and not word.endswith((".c", ".cc")):
            out.append(word)
    subprocess.run([out[0], f"-I{first_include}", *out[1:], f"-I{ROOT / 'cli'}", "-w", "-O0", "-c", str(source), "-o", str(output)],
                   cwd=BUILD, check=True)


def link(objects, output):
    """The program; what the objects define is not taken from the archives behind them."""
    libraries = subprocess.run(["pkg-config", "--libs", "zlib", "libzstd", "yaml-0.1"],
                               capture_output=True, text=True, check=True).stdout.split()
    archives = [*sorted((BUILD / "cli").glob("*.a")), BUILD / "liborrery.a"]
    flags = {word for words in commands().values() for word in words if word.startswith("-fsanitize")}
    subprocess.run(["g++", *sorted(flags), str(BUILD / "cli" / "orrery.p" / "main.c.o"), *map(str, objects), *map(str, archives), *libraries,
                    "-lm", "-lpthread", "-ldl", "-o", str(output)], check=True)


def say(program, *words):
    done = subprocess.run([str(program), *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def edit(source, target, *pairs):
    text = (ROOT / source).read_text()
    for old, new in pairs:
        assert text.count(old) == 1, f"{source}: '{old}' is there {text.count(old)} times"
        text = text.replace(old, new)
    target.write_text(text)


def add_a_view():
    """1. a file in src/views, 2. a row and its function in cli/cmd_view.c, 3. the line in meson.build."""
    (HERE / "edges_view.c").write_text(EDGES_C)
    edit("cli/cmd_view.c", HERE / "cmd_view.c", ("/* ---- the table ---- */\n", VIEW_FUNCTION + "/* ---- the table ---- */\n"))
    text = (HERE / "cmd_view.c").read_text()
    last = text.index("\n\n", text.index("#define VIEWS("))
    row = ' \\\n    NEXT("edges", "dependencies as CSV", "rank lenient", view_edges, NULL)'
    (HERE / "cmd_view.c").write_text(text[:last] + row + text[last:])
    compile_as("src/views/gantt_view.c", HERE / "edges_view.c", HERE / "edges_view.o", HERE)
    compile_as("cli/cmd_view.c", HERE / "cmd_view.c", HERE / "cmd_view.o", HERE)
    program = HERE / "orrery_view"
    link([HERE / "edges_view.o", HERE / "cmd_view.o"], program)
    assert "edges" in say(program, "help", "view")[1], "the view is not in the help"
    assert "edges" in say(program, "view", "xyzzy", "a.et")[1], "the view is not in the list of the error"
    assert "'edges'" in say(program, "view", "edgs", "a.et")[1], "the view is not suggested"
    status, text = say(program, "view", "edges", "a.et", "--collapse")
    assert status == 2 and "--collapse has no effect on 'edges'" in text, text
    say(program, "gen", "two_comp_nodes_dependent", "-o", "two")
    status, text = say(program, "view", "edges", "two.0.et")
    assert status == 0 and text.startswith("parent,child\n") and len(text.splitlines()) == 2, text


def add_a_command():
    """1. cli/cmd_hello.c, 2. its row in CLI_COMMANDS, 3. the line in meson.build."""
    headers = HERE / "headers"
    headers.mkdir()
    edit("cli/command.h", headers / "command.h", ("    X(help)", "    X(hello) \\\n    X(help)"))
    objects = []
    (HERE / "cmd_hello.c").write_text(HELLO_C)
    (HERE / "command.c").write_text((ROOT / "cli" / "command.c").read_text())
    for name in ("cmd_hello", "command"):
        compile_as("cli/command.c", HERE / f"{name}.c", HERE / f"{name}.o", headers)
        objects.append(HERE / f"{name}.o")
    program = HERE / "orrery_hello"
    link(objects, program)
    assert "hello" in say(program, "help")[1], "the command is not in the overview"
    assert "'hello'" in say(program, "helo")[1], "the command is not suggested"
    assert say(program, "hello") == (0, "hello\n")


def main():
    recipes = [add_a_view, add_a_command]
    print(f"1..{len(recipes)}")
    for i, recipe in enumerate(recipes, 1):
        try:
            recipe()
            print(f"ok {i} - {recipe.__name__}")
        except (AssertionError, subprocess.CalledProcessError, OSError) as why:
            print(f"not ok {i} - {recipe.__name__}\n# {why}")


main()
