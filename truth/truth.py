#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""truth.py - compares measurements with predictions: runs every table of truth/tables through `orrery stage` or `orrery
serve` and `orrery run`.

    truth/truth.py [--build build] [--table NAME]... [--sample N] [--rows] [--write docs/truth.md] [--check]

Nothing in here is fitted: a row becomes the options its source names, and the software of its time.  --sample N takes
every N-th row of a table; --check compares the mean errors with truth/limits.csv and fails when one has grown."""

import argparse
import concurrent.futures
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import truth_page
import truth_tables

ROOT = Path(__file__).resolve().parent.parent
LIMITS = ROOT / "truth" / "limits.csv"
KERNELS = ROOT / "truth" / "tables" / "kernels_left_out.csv"
SLACK = 0.5  # percentage points by which a mean error may grow before the check fails


class Wall:
    """Runs cases, with one folder for all intermediate files."""

    def __init__(self, build, folder, options):
        self.program = str((ROOT / build / "bin" / "orrery").resolve())
        self.folder = Path(folder)
        self.options = options

    def model(self, case, stem):
        if isinstance(case.model, str):
            return case.model
        path = self.folder / f"{stem}.config.json"
        path.write_text(json.dumps(case.model))
        return str(path)

    def call(self, words):
        done = subprocess.run([self.program] + [str(w) for w in words], capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().split("\n")[0])
        return done.stdout

    def host_words(self, case):
        return ["--software", f"{case.software()}:{min(3.0, max(0.3, case.host)):.3f}"] if case.host else []

    def run(self, case):
        """Adds the prediction to the case, or the reason why there is none."""
        stem = f"case{case.number}"
        traces = self.folder / f"{stem}.orr"
        try:
            made = self.call([*case.command.split(), self.model(case, stem), *case.words, "--json", "-o", traces])
            case.made = json.loads(made)
            if case.measures == "memory":
                case.predicted = case.read(case.made)
            else:
                ran = json.loads(self.call(["run", traces, *case.run_words, *self.host_words(case), *self.options, "--json"]))
                case.predicted = case.read_run(ran)
                case.made["interval_ns"] = ran.get("interval_ns")
        except (RuntimeError, subprocess.TimeoutExpired, KeyError, ValueError) as e:
            case.why = str(e)[:200]
        for path in self.folder.glob(f"{stem}.*"):
            path.unlink()
        return case


    def run_all(self, pool, cases):
        """Rows that differ only in the measured value are run once."""
        first = {}
        for case in cases:
            first.setdefault(case.key(), case)
        list(pool.map(self.run, {other.number: other for case in cases for other in case.host_from}.values()))
        give_hosts(cases)
        list(pool.map(self.run, first.values()))
        for case in cases:
            same = first[case.key()]
            case.made, case.predicted, case.why = same.made, same.predicted, same.why
        return cases


def give_hosts(cases):
    """Estimates the speed of a host from steps that it limits: measured over predicted time.  All models share the
    host, but its speed varies from minute to minute.  If a model has several such steps, their scatter measures this
    variation, and the model's mean is shrunk towards the mean of all models, by the share of the spread between models
    that the variation explains."""
    hosts = {}
    for case in cases:
        logs = [math.log(other.measured / other.predicted) for other in case.host_from if other.predicted]
        if logs:
            case.host_key = tuple(other.key() for other in case.host_from)
            hosts.setdefault(case.host_name, {})[case.host_key] = logs
    for case in cases:
        known = hosts.get(case.host_name, {})
        if not case.host_key:
            continue
        own = known[case.host_key]
        means = [sum(logs) / len(logs) for logs in known.values()]
        middle, mean = sum(means) / len(means), sum(own) / len(own)
        more = sum(len(logs) - 1 for logs in known.values())
        wander = sum((x - m) ** 2 for logs, m in zip(known.values(), means) for x in logs) / more if more else 0.0
        spread = sum((m - middle) ** 2 for m in means) / (len(means) - 1) if len(means) > 1 else 0.0
        case.host = math.exp(middle + (mean - middle) * (max(0.0, 1 - wander / len(own) / spread) if spread else 1.0))


def read_limits():
    lines = [line.split(",") for line in LIMITS.read_text().split("\n") if line and not line.startswith("#")]
    return {words[0]: float(words[1]) for words in lines[1:]}


def check(results):
    limits = read_limits()
    worse = [r for r in results if r.count and r.name in limits and r.mean > limits[r.name] + SLACK]
    for r in worse:
        print(f"{r.name}: mean error {r.mean:.1f} % is above {limits[r.name]:.1f} % (truth/limits.csv)", file=sys.stderr)
    return 1 if worse else 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--table", action="append", help="only this table; may be repeated")
    p.add_argument("--sample", type=int, default=1)
    p.add_argument("--rows", action="store_true", help="print every row")
    p.add_argument("--write", help="write the page")
    p.add_argument("--check", action="store_true")
    p.add_argument("--limits", action="store_true", help="print the file of limits")
    p.add_argument("--run-options", default="", help="further words for orrery run")
    args = p.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        wall = Wall(args.build, folder, args.run_options.split())
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for table in truth_tables.TABLES:
                if args.table and table.name not in args.table:
                    continue
                cases = table.cases()[:: args.sample]
                result = truth_page.Result(table, wall.run_all(pool, cases))
                results.append(result)
                print(result.line(), flush=True)
                if args.rows:
                    print("\n".join(result.rows()), flush=True)
    if not args.table:
        print("\n".join(truth_page.kernel_lines(KERNELS)), flush=True)
    if args.write:
        Path(args.write).write_text(truth_page.page(results) + truth_page.intervals(results) + truth_page.kernels(KERNELS))
        truth_page.draw(results, Path(args.write).parent / "pictures")
    if args.limits:
        print(truth_page.limits(results), end="")
    return check(results) if args.check else 0


if __name__ == "__main__":
    sys.exit(main())
