#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fit_nccl.py - fits the constants of the NCCL model to measured curves.

    tools/fit_nccl.py [--build build] [--keep FOLDER]

Writes each curve of truth/collectives/aiconfigurator_nccl.csv as nccl-tests would have printed it, runs `orrery
calibrate nccl` for each generation from the starting values below, and rewrites the fitted rows of nccl_constants.c.
Then each curve (machine, operation, GPUs) is left out once: its errors under a fit to the others give the interval of
each size class, and go to truth/collectives/left_out.csv.  Takes minutes; deterministic."""

import argparse
import csv
import json
import math
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "truth" / "collectives" / "aiconfigurator_nccl.csv"
LEFT_OUT = ROOT / "truth" / "collectives" / "left_out.csv"
CONSTANTS = ROOT / "src" / "models" / "collective" / "nccl" / "nccl_constants.c"

# Per generation: the machine whose port rates are the reference, the systems of the data, and the starting values:
# launch and steps from the curves at the smallest sizes, rates as NCCL counts NVLink (20 of 25, 20.6 of 25, 40.1 of 50
# GB/s).
GENERATIONS = {
    "ampere": ("dgx-a100", ["a100_sxm"], dict(base=8.1, grow=2.7, step=0.92, step_grow=0.5, simple=9.0, rate=0.79)),
    "hopper": ("dgx-h100", ["h100_sxm", "h200_sxm"],
               dict(base=4.4, grow=1.0, step=0.84, step_grow=0.12, simple=3.6, rate=0.82)),
    "blackwell": ("dgx-b200", ["b200_sxm", "gb200"],
                  dict(base=7.7, grow=0.5, step=1.23, step_grow=0.2, simple=9.3, rate=0.755)),
}
START = """generation: {generation}
LL: {{base: {base}us, grow: {grow}us, step: {step}us, step_grow: {step_grow}us, rate: 0.45, ends: 1}}
LL128: {{base: {base}us, grow: 0ns, step: 1.5us, step_grow: 0ns, rate: 0.65, ends: 0.5}}
Simple: {{base: 12us, grow: 0ns, step: {simple}us, step_grow: 0ns, rate: {rate}, ends: 0.5, drain: 30us}}
direct: {{base: {base}us, grow: 6us, peer: 300ns, rate: 0.8, drain: 10us}}
"""
CLASSES = ("small", "middle", "large")


def class_of(size):
    return 0 if size < 65536 else 1 if size <= 16 << 20 else 2


def curves():
    """(system, op, gpus) -> dtype -> [(size, us)]"""
    with open(DATA, encoding="utf-8") as f:
        rows = csv.reader(line for line in f if not line.startswith("#"))
        sizes = [int(s) for s in next(rows)[4:]]
        out = {}
        for system, op, dtype, gpus, *times in rows:
            out.setdefault((system, op, int(gpus)), {})[dtype] = list(zip(sizes, map(float, times)))
    return out


def as_text(curve, rows):
    """The table of nccl-tests; the calibration reads size, time and algbw."""
    _, op, gpus = curve
    lines = [f"# Collective test starting: {op}_perf"]
    lines += [f"#  Rank {i} Group 0 Pid 0 on node device {i} [0] x" for i in range(gpus)]
    lines += ["# size count type redop root time algbw busbw #wrong", "# (B) (elements) (us) (GB/s) (GB/s)"]
    lines += [f"{size} {size // 4} float none -1 {us:.3f} {size / us / 1e3:.4f} 0 0" for size, us in rows]
    return "\n".join(lines + ["# Avg bus bandwidth : 0", ""])


class Fitter:
    def __init__(self, build, folder):
        self.program = str((pathlib.Path(build) / "bin" / "orrery").resolve())
        self.folder = pathlib.Path(folder)
        self.all = curves()
        for curve, types in self.all.items():
            for dtype, rows in types.items():
                self.path(curve, dtype).write_text(as_text(curve, rows))

    def path(self, curve, dtype):
        return self.folder / f"{'-'.join(map(str, curve))}-{dtype}.txt"

    def call(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, check=False, cwd=self.folder)
        if done.returncode:
            raise SystemExit(f"orrery {' '.join(words)}: {done.stderr}")
        return done.stdout

    def machine(self, generation):
        name, _, start = GENERATIONS[generation]
        text = self.call("machine", "show", name, "--file")
        table = self.folder / f"{generation}.start.yml"
        table.write_text(START.format(generation=generation, **start))
        out = self.folder / f"{generation}.yml"
        out.write_text("".join(f"collectives: {table.name}\n" if line.startswith("collectives:") else line
                               for line in text.splitlines(True)))
        return out.name

    def of(self, generation):
        return [c for c in self.all if c[0] in GENERATIONS[generation][1]]

    def fit(self, generation, chosen, name):
        files = [self.path(c, dtype).name for c in chosen for dtype in self.all[c]]
        said = json.loads(self.call("calibrate", "nccl", *files, "--machine", self.machine(generation), "-o",
                                    f"{name}.yml", "--json"))
        return said, (self.folder / f"{name}.collectives.yml").read_text()

    def ratios(self, machine, curve):
        """Measured over modelled time, and the size, of every row of a curve."""
        rows = [row for rows in self.all[curve].values() for row in rows]
        said = json.loads(self.call("nccl-tests", "--machine", machine, "--op", curve[1], "--ranks", str(curve[2]), "-b",
                                    "512", "-e", "512M", "-d", "int8", "--json"))
        model = {row["size"]: row["time_us"] for row in said["rows"]}
        return [(size, us / model[size]) for size, us in rows]


def quantiles(ratios):
    ratios = sorted(ratios)
    cut = len(ratios) // 20
    return ratios[cut], ratios[-1 - cut]


def value(text, section, key):
    """A value of the table that calibrate writes: ns, or a plain number."""
    at = text.index(f"\n{section}:") if section else 0
    at = text.index(f"{key}: ", at) + len(key) + 2
    return text[at:].split("\n", 1)[0].removesuffix("ns")


def c_rows(generation, table, spread, rows, error, held):
    lines = []
    for p in ("LL", "LL128", "Simple"):
        keys = ("base", "grow", "step", "step_grow", "out_step", "tree_step", "rate", "ends", "drain")
        lines.append("{" + ", ".join(value(table, p, k) for k in keys) + "}")
    direct = {k: value(table, "direct", k) for k in ("base", "grow", "peer", "rate", "drain")}
    inside = ", ".join(f"{{{low:.3f}, {high:.3f}}}" for low, high in spread)
    return f"""/* {rows} rows; mean error {error * 100:.1f} %, {held * 100:.1f} % on curves left out */
#define {generation.upper()}_LINES {{ \\
    {lines[0]}, \\
    {lines[1]}, \\
    {lines[2]} }}
#define {generation.upper()}_DIRECT \\
    .direct_ns = {direct["base"]}, .direct_grow_ns = {direct["grow"]}, .peer_ns = {direct["peer"]}, \\
    .direct_rate = {direct["rate"]}, .direct_drain_ns = {direct["drain"]}
#define {generation.upper()}_SPREAD {{ {inside} }}
#define {generation.upper()}_ROWS {rows}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--keep", help="a folder for the files on the way")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        fitter = Fitter(args.build, args.keep or scratch)
        text, left = "", ["# Mean error of each curve by constants fitted to the other curves of its generation, and of the rows"
                          " of each\n# size class 5 and 95 % of measured over modelled.  Written by tools/fit_nccl.py.\n",
                          "generation,system,op,gpus,rows,error\n"]
        for generation in GENERATIONS:
            chosen = fitter.of(generation)
            said, table = fitter.fit(generation, chosen, f"{generation}.fit")
            classes, sums, rows = ([], [], []), 0.0, 0
            for curve in chosen:
                fitter.fit(generation, [c for c in chosen if c != curve], "left")
                ratios = fitter.ratios("left.yml", curve)
                for size, ratio in ratios:
                    classes[class_of(size)].append(ratio)
                error = math.fsum(abs(1 / r - 1) for _, r in ratios)
                left.append(f"{generation},{','.join(map(str, curve))},{len(ratios)},{error / len(ratios):.4f}\n")
                print(left[-1], end="", flush=True)
                sums, rows = sums + error, rows + len(ratios)
            spread = [quantiles(c) for c in classes]
            print(f"{generation}: {said['error_now'] * 100:.1f} % in the fit, {sums / rows * 100:.1f} % left out")
            text += c_rows(generation, table, spread, said["row_count"], said["error_now"], sums / rows)
    source = CONSTANTS.read_text()
    begin, end = "/* fitted: tools/fit_nccl.py */\n", "/* end of what is fitted */\n"
    head, rest = source.split(begin)
    CONSTANTS.write_text(head + begin + text + end + rest.split(end)[1])
    LEFT_OUT.write_text("".join(left))


main()
