#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executable specification of the GEMM list -> text workload generator.

Follows docs/spec/scale-sim.md section 7; cycles come from the closed forms of
sections 2 (backend v1) and 6.2 (backend v2, no stalls) in systolic.py.

    gemm_workload.py --mnk FILE --scalesim_config FILE --output_file FILE
        [--backend v1|v2] [--parallel DATA] [--num_npus 8] [--num_packages 1]
        [--datatype_size 2] [--topologies DIR]
    gemm_workload.py --random SEED --output_dir DIR
    gemm_workload.py --check DIR          golden generator directory

--topologies also writes the three layer files of section 7.3.  Options may be
written --key=value or --key value.  `--run_name` and `--scalesim_path` are
accepted and ignored.
"""
import argparse
import csv
import os
import random
import sys

import systolic

PASSES = ("fwd_pass", "inp_grad", "weight_grad")
UPDATE_TIME = "100"
HEADER = ("Layer name,ifmap height,ifmap width,filter height,filter width,"
          "channels,num filter,strides,")
CUSTOM = "HYBRID_CUSTOMIZED"


class Rejected(Exception):
    """Input that the generator refuses (section 7.6)."""


def quotient(a, b):
    """Division in double precision, truncated (sections 7.2 and 7.4)."""
    return int(a / b)


class Plan:
    """One row of the tables of sections 7.2 and 7.4.

    `batch_ways` and `output_ways` divide m and n; a collective is given as
    (type, divisor) or None, in the order of PASSES.
    """

    def __init__(self, batch_ways, output_ways, *collectives):
        self.batch_ways, self.output_ways = batch_ways, output_ways
        self.collectives = collectives


def plans(npus, packages):
    """Strategy table for N npus in P packages of Q."""
    q = npus // packages
    gather = ("ALLGATHER", npus)
    return {
        "DATA": Plan(npus, 1, None, None, ("ALLREDUCE", 1)),
        "MODEL": Plan(1, npus, gather, ("REDUCESCATTER", 1), None),
        "HYBRID_DATA_MODEL": Plan(packages, q, gather, ("REDUCESCATTER", packages), ("ALLREDUCE", q)),
        "HYBRID_MODEL_DATA": Plan(q, packages, gather, ("REDUCESCATTER", q), ("ALLREDUCE", packages)),
    }


class Gemm:
    """One input line with its strategy."""

    def __init__(self, fields, strategy):
        self.name, self.strategy = fields[0], strategy
        self.m, self.n, self.k = (int(x) for x in fields[1:4])

    def shapes(self, plan):
        """(rows, window, filters) per pass (section 7.3)."""
        m, n = quotient(self.m, plan.batch_ways), quotient(self.n, plan.output_ways)
        return (m, self.k, n), (m, n, self.k), (self.k, m, n)

    def tensors(self):
        """Elements whose collective belongs to each pass (section 7.4)."""
        return self.m * self.n, self.m * self.k, self.n * self.k


def read_gemms(text, parallel):
    """Input CSV of section 7.1; the first line is always skipped."""
    found = []
    for line in text.splitlines()[1:]:
        fields = line.strip(" ").split(",")
        strategy = parallel
        if parallel == CUSTOM:
            if len(fields) != 5:
                raise Rejected("There should be 5 columns in the mnk file")
            strategy = fields[4]
        elif len(fields) == 3:
            fields[2] = parallel                        # the last field is overwritten (7.6)
        elif len(fields) < 3:
            raise Rejected("list index out of range")
        try:
            found.append(Gemm(fields, strategy))
        except ValueError as e:
            raise Rejected(str(e)) from None
    return found


def cycles_of(machine, shape, backend):
    """Cycle text of one GEMM as the report field shows it (section 7.5)."""
    rows, window, filters = shape
    if not all(shape):
        raise Rejected("report file or folder not found")
    conv = systolic.Conv("", rows, window, 1, window, 1, filters)
    if backend == "v1":
        return str(systolic.v1_cycles(machine, conv))
    return " " + str(systolic.v2_cycles(machine, conv))


class Workload:
    """All layers of one run."""

    def __init__(self, text, machine, parallel, npus, packages, datatype, backend):
        if npus % packages:
            raise Rejected("num_npus is not a multiple of num_packages")
        self.table = plans(npus, packages)
        self.parallel, self.machine, self.backend, self.datatype = parallel, machine, backend, datatype
        self.gemms = read_gemms(text, parallel)
        for g in self.gemms:
            if g.strategy not in self.table:
                raise Rejected(f"Invalid parallelization strategy {g.strategy}")

    def line(self, g):
        """One output line (section 7.5)."""
        plan = self.table[g.strategy]
        shapes = g.shapes(plan)
        times = [cycles_of(self.machine, x, self.backend) for x in shapes]
        if self.backend == "v2":
            times = times[2:] * 3                       # all passes show the last one
        fields = [g.name, "-1"]
        for time, elements, collective in zip(times, g.tensors(), plan.collectives):
            kind, ways = collective or ("NONE", None)
            size = quotient(elements * self.datatype, ways) if collective else 0
            fields += [time, kind, str(size)]
        return "\t".join(fields + [UPDATE_TIME, g.strategy])

    def text(self):
        return "\n".join([self.parallel, str(len(self.gemms))] + [self.line(g) for g in self.gemms])

    def topologies(self):
        """Text of the three layer files (section 7.3), by pass."""
        files = {}
        for i, name in enumerate(PASSES):
            rows = [HEADER]
            for g in self.gemms:
                height, window, filters = g.shapes(self.table[g.strategy])[i]
                rows.append(f"{g.name},{height},{window},1,{window},1,{filters},1,")
            files[name] = "\n".join(rows) + "\n"
        return files


def read_text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def save(path, text):
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(text)


def random_case(seed, folder):
    """A random list of GEMMs, both configurations and both expected files."""
    rng = random.Random(seed)
    packages = rng.choice((1, 2, 3, 4))
    npus = packages * rng.choice((1, 2, 3, 4))
    strategies = list(plans(npus, packages))
    parallel = rng.choice(strategies + [CUSTOM])
    pick = lambda: rng.randint(npus, 40 * npus)         # no empty shard
    lines = ["Layer,m,n,k" + (",Strategy" if parallel == CUSTOM else "")]
    for i in range(rng.randint(1, 8)):
        extra = f",{rng.choice(strategies)}" if parallel == CUSTOM else ""
        lines.append(f"L{i},{pick()},{pick()},{pick()}{extra}")
    machine = systolic.Machine(rng.randint(1, 40), rng.randint(1, 40), rng.choice(("os", "ws", "is")),
                               65536, 65536, 65536)
    datatype = rng.choice((1, 2, 3, 4))
    os.makedirs(folder, exist_ok=True)
    save(os.path.join(folder, "mnk.csv"), "\n".join(lines) + "\n")
    rows = ["case,backend,mnk,config,parallel,num_npus,num_packages,datatype_size,expected"]
    for backend in ("v1", "v2"):
        save(os.path.join(folder, f"arch.{backend}.cfg"), systolic.config_text(machine, backend))
        w = Workload("\n".join(lines), machine, parallel, npus, packages, datatype, backend)
        save(os.path.join(folder, f"expected.{backend}.txt"), w.text())
        rows.append(f"random_{seed}_{backend},{backend},mnk.csv,arch.{backend}.cfg,{parallel},"
                    f"{npus},{packages},{datatype},expected.{backend}.txt")
    save(os.path.join(folder, "cases.csv"), "\n".join(rows) + "\n")


def run_row(root, row):
    """Workload of one row of cases.csv or edge_cases.csv."""
    n = lambda key: int(row[key])
    machine = systolic.read_machine(os.path.join(root, row["config"]))
    return Workload(read_text(os.path.join(root, row["mnk"])), machine, row["parallel"],
                    n("num_npus"), n("num_packages"), n("datatype_size"), row["backend"])


def check(root):
    """Compare all golden runs, then the edge cases; returns an exit status."""
    bad = total = 0
    with open(os.path.join(root, "cases.csv"), newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            total += 1
            if run_row(root, row).text() != read_text(os.path.join(root, row["expected"])):
                bad += 1
                print("differs:", row["case"])
    print(f"{total} runs, {bad} mismatches")
    edges = os.path.join(root, "edge_cases.csv")
    if os.path.exists(edges):
        bad += check_edges(root, edges)
    return 1 if bad else 0


def check_edges(root, path):
    """Exit status, message and text of the small inputs of section 7.6."""
    total = bad = skipped = 0
    with open(path, newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            if "runname" in row["case"]:
                skipped += 1                            # folder naming, not modelled
                continue
            try:
                result = ("0", "", run_row(root, row).text().replace("\n", "\\n").replace("\t", "\\t"))
            except Rejected as e:
                result = ("1", str(e), "")
            wanted = (row["exit"], row["message"] if row["exception"] != "AssertionError" or row["message"]
                      else result[1], row["output_escaped"])
            total += 1
            if result != wanted:
                bad += 1
                print("differs:", row["case"], result, wanted)
    print(f"{total} edge cases, {bad} mismatches, {skipped} not modelled")
    return bad


def main(argv):
    """Command line; see the module text."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--mnk", default="mnk_inputs/test.csv")
    p.add_argument("--output_file", default="workload.txt")
    p.add_argument("--scalesim_config")
    p.add_argument("--backend", choices=("v1", "v2"), default="v2")
    p.add_argument("--parallel", default="DATA")
    for key, default in (("datatype_size", 2), ("num_npus", 8), ("num_packages", 1)):
        p.add_argument("--" + key, type=int, default=default)
    for key in ("run_name", "scalesim_path", "topologies", "check"):
        p.add_argument("--" + key)
    p.add_argument("--random", type=int, metavar="SEED")
    p.add_argument("--output_dir", default="case")
    a = p.parse_args(argv)
    if a.check:
        return check(a.check)
    if a.random is not None:
        random_case(a.random, a.output_dir)
        return 0
    if not a.scalesim_config:
        p.error("--scalesim_config is required")
    try:
        w = Workload(read_text(a.mnk), systolic.read_machine(a.scalesim_config), a.parallel,
                     a.num_npus, a.num_packages, a.datatype_size, a.backend)
        save(a.output_file, w.text())
    except Rejected as e:
        print(e, file=sys.stderr)
        return 1
    if a.topologies:
        os.makedirs(a.topologies, exist_ok=True)
        stem = os.path.basename(a.mnk).rstrip(".csv")
        for name, text in w.topologies().items():
            save(os.path.join(a.topologies, f"{stem}_{name}.csv"), text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
