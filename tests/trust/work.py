# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share: traces, systems and networks in a few words, runs of the program, TAP.

ORR_MUCH=1 (make check) makes them do much more of the same."""

import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))

import etlib

MUCH = os.environ.get("ORR_MUCH") == "1"
SLOW = float(os.environ.get("ORR_SLOW", "1"))  # how much slower the program may be: under sanitizers
SHARE, SHARES = map(int, os.environ.get("ORR_SHARE", "1/1").split("/"))  # of the cases of a long script: every SHARES-th
COMP, SEND, RECV, COLL = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER = 0, 2, 6, 7
SYSTEM = {"scheduling-policy": "LIFO", "preferred-dataset-splits": 1, "local-mem-bw": 1600, "endpoint-delay": 10,
          "active-chunks-per-dimension": 1,
          "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
          "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["direct"]}


class Node:
    """One node; deps are ids."""

    def __init__(self, id, type, deps=(), us=0, name=None, ctrl=(), **attrs):
        self.id, self.type, self.name = id, type, name
        self.ctrl_deps, self.data_deps, self.duration_micros = list(ctrl), list(deps), us
        self.attrs = {"is_cpu_op": False, **attrs}


def compute(id, us, deps=(), **more):
    return Node(id, COMP, deps, us=us, **more)


def send(id, to, size, tag=0, deps=(), **more):
    return Node(id, SEND, deps, comm_dst=to, comm_size=size, comm_tag=tag, **more)


def receive(id, source, size, tag=0, deps=(), **more):
    return Node(id, RECV, deps, comm_src=source, comm_size=size, comm_tag=tag, **more)


def collective(id, kind, size, deps=(), group=None, **more):
    if group is not None:
        more["pg_name"] = str(group)
    return Node(id, COLL, deps, comm_type=kind, comm_size=size, **more)


def write_traces(prefix, ranks):
    for rank, nodes in enumerate(ranks):
        etlib.write_trace(f"{prefix}.{rank}.et", nodes)


def write_network(path, shape="Switch", count=4, bandwidth=50, latency=500):
    shapes = shape if isinstance(shape, list) else [shape]
    counts = count if isinstance(count, list) else [count]
    several = lambda value: value if isinstance(value, list) else [value] * len(shapes)
    pathlib.Path(path).write_text(
        f"topology: [{', '.join(shapes)}]\nnpus_count: {counts}\nbandwidth: {several(bandwidth)}\nlatency: {several(latency)}\n")


def write_json(path, value):
    pathlib.Path(path).write_text(json.dumps(value))


def orrery(*words, timeout=120, **more):
    return subprocess.run(["orrery", *map(str, words)], capture_output=True, text=True, errors="backslashreplace",
                          timeout=timeout * SLOW, stdin=subprocess.DEVNULL, **more)


class Tap:
    """ok and not ok lines; the plan comes last."""

    def __init__(self):
        self.count = self.failed = 0

    def case(self, name, problem=""):
        """A case; `problem` is empty when it passed."""
        self.count += 1
        self.failed += bool(problem)
        print(f"{'not ok' if problem else 'ok'} {self.count} - {name}", flush=True)
        for line in str(problem or "").splitlines():
            print(f"# {line}")

    def end(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)
