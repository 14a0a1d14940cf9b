#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""spreads.py - the required widths of intervals, from rows that constants were fitted to or that were measured for this
purpose, never from judged rows.

    truth/spreads.py [--build build]

Prints the 90 % spreads behind ORR__HOST_ERROR, ORR__KNOWN_HOST_ERROR, ORR__COMPILED_ERROR and JOB_FACTOR of
src/models/compute/atlas/chip_cost.[ch].  Rows that share a measurement count as one error, so few are left; for few errors a root
mean square is more robust than a percentile, and 1.645 times it covers 90 % of normally distributed errors."""

import argparse
import collections
import concurrent.futures
import csv
import math
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import truth
import truth_tables

MEASURED = Path(__file__).resolve().parent / "measure"
FITTED = 7  # every seventh row of vTrain's single-node table

SMALL = {"gpt": dict(kind="gpt", V=1024, d=256, heads=4, kv=4, hd=64, ff=1024),
         "llama": dict(kind="llama", V=1024, d=256, heads=4, kv=4, hd=64, ff=768),
         "llama_rope": dict(kind="llama", V=1024, d=256, heads=4, kv=2, hd=64, ff=768, rope=1),
         "moe": dict(kind="moe", V=1024, d=256, heads=4, kv=4, hd=64, ff=512, experts=8, topk=2, rope=1)}
COMPILED = {"gpt_a": dict(kind="gpt", V=50304, d=1280, L=3, heads=20, kv=20, hd=64, ff=5120, batch=8, seq=1024),
            "llama_a": dict(kind="llama", V=32000, d=1024, L=3, heads=16, kv=4, hd=64, ff=2816, batch=16, seq=1024, rope=1),
            "llama_b": dict(kind="llama", V=128000, d=1536, L=2, heads=24, kv=8, hd=64, ff=4096, batch=4, seq=2048, rope=1),
            "moe_a": dict(kind="moe", V=32000, d=1024, L=2, heads=16, kv=16, hd=64, ff=2048, experts=8, topk=2, batch=8,
                          seq=1024, rope=1),
            "gpt_c": dict(kind="gpt", V=50304, d=768, L=2, heads=12, kv=12, hd=64, ff=3072, batch=16, seq=1024),
            "llama_c": dict(kind="llama", V=32000, d=768, L=2, heads=12, kv=12, hd=64, ff=2048, batch=24, seq=1024, rope=1),
            "llama_d": dict(kind="llama", V=100000, d=896, L=2, heads=14, kv=2, hd=64, ff=4864, batch=4, seq=2048, rope=1),
            "moe_c": dict(kind="moe", V=32000, d=768, L=2, heads=12, kv=12, hd=64, ff=2048, experts=8, topk=2, batch=6,
                          seq=1024, rope=1)}


def rows_of(name):
    with open(MEASURED / f"{name}.csv", encoding="utf-8") as f:
        return list(csv.DictReader(line for line in f if not line.startswith("#")))


def full_row(shape, mode, batch, seq, layers):
    """A row in the format of truth/tables/h200_steps.csv."""
    return {"model": shape["kind"], "kind": shape["kind"], "L": layers, "d": shape["d"], "V": shape["V"], "heads": shape["heads"],
            "kv": shape["kv"], "hd": shape["hd"], "ff": shape["ff"], "rope": str(shape.get("rope", 0)),
            "experts": shape.get("experts", 0), "topk": shape.get("topk", 0), "batch": batch, "seq": seq, "mode": mode,
            "dropout": 0, "opt": "adamw_fused", "clip": "0", "ckpt": "0"}


def host_cases():
    out = []
    for r in rows_of("host") + rows_of("hosts"):
        phase, mode = r["what"].split()
        software = {"blocks": "torch-compile", "whole": "torch-compile-whole", "eager": "torch-eager"}[mode]
        row = full_row(SMALL[r["model"]], "forward" if phase == "forward" else "eager" if mode == "eager" else "compile", 2, 128, r["layers"])
        label, model = f"{r['model']} {r['what']} {r['layers']} host {r.get('host', 3)}", truth_tables.own_model(row)
        measured = float(r.get("median_ms") or r["stream_ms"])
        if phase in ("decode", "prefill"):
            words = ["--phase", phase, "--batch", 2, "--prompt-tokens", 200 if phase == "decode" else 128, "--output-tokens", 1,
                     "--software", software]
            case = truth_tables.Case(label, model, words, ["--hardware", "h200"], measured, command="serve")
        else:
            words, run_words = truth_tables.own_words(row)
            words[words.index("--software") + 1] = software
            case = truth_tables.Case(label, model, words, run_words, measured)
        case.phase, case.model_of = r["what"], (r["model"], r["layers"], r.get("host", 3))
        out.append(case)
    return out


def compiled_cases():
    out = []
    for r in rows_of("compiled_steps"):
        c = COMPILED[r["model"]]
        if r["mode"] != "blocks":
            continue
        words, run_words = truth_tables.own_words(full_row(c, "compile", c["batch"], c["seq"], c["L"]))
        # the device alone: the host has its own spread
        out.append(truth_tables.Case(r["model"], truth_tables.own_model(full_row(c, "compile", c["batch"], c["seq"], c["L"])), words,
                                     run_words + ["--software", "cuda-graph"], float(r["busy_ms"])))
    for r in rows_of("compiled_graphs"):
        if r["mode"] == "blocks":
            c = {key: value if key == "kind" else int(value) for key, value in (word.split("=") for word in r["shape"].split())}
            row = full_row(c, "compile_graph", c["batch"], c["seq"], c["L"]) | {"tied": str(c.get("tied", 0))}
            out.append(truth_tables.Case(r["model"], truth_tables.own_model(row), *truth_tables.own_words(row), float(r["graph_ms"])))
    return out


def spread(errors):
    return 1.645 * math.sqrt(sum(e * e for e in errors) / len(errors))


def spread_of_next(errors):
    """Half width of the 90 % prediction interval of one more error: Student's t, by its expansion around the normal
    quantile (within 0.1 % from 10 degrees of freedom on).  The mean error is assumed to be zero, so there are as many
    degrees of freedom as errors."""
    z, n = 1.6449, len(errors)
    t = z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n * n)
    return t * math.sqrt(sum(e * e for e in errors) / n)


def ratios(cases):
    for c in cases:
        if not c.predicted:
            sys.exit(f"{c.label}: {c.why}")
    return {c.label: c.measured / c.predicted for c in cases}


def report_host(cases):
    known = ratios(cases)
    eager = [c for c in cases if c.phase.endswith("eager")]
    speed = {c.model_of: known[c.label] for c in eager if c.phase == "train eager"}
    unknown = [math.log(known[c.label]) for c in eager]
    given = [math.log(known[c.label] / speed[c.model_of]) for c in eager if c.phase != "train eager" and c.model_of in speed]
    blocks = [math.log(known[c.label]) for c in cases if not c.phase.endswith("eager")]
    for c in cases:
        print(f"    {c.label:<32} {c.measured:8.3f} {c.predicted:8.3f} ms")
    print(f"host, its speed not known: {len(unknown)} rows, {100 * spread(unknown):.0f} %")
    print(f"host, its speed read off the training step: {len(given)} rows, {100 * spread(given):.0f} %")
    print(f"host of compiled models, its speed not known: {len(blocks)} rows, {100 * spread(blocks):.0f} %")


def report_compiled(cases):
    errors = [math.log(r) for r in ratios(cases).values()]
    for c in cases:
        print(f"    {c.label:<32} {c.measured:8.3f} {c.predicted:8.3f} ms")
    print(f"compiled kernels: {len(errors)} rows, {100 * spread(errors):.1f} %")


def report_jobs(cases):
    families = collections.defaultdict(list)
    for c in cases:
        h, tp, micro = re.match(r"h(\d+) l\d+ tp(\d+) .* mb(\d+)", c.label).groups()
        families[h, tp, micro].append(math.log(c.measured / c.predicted))
    means = [sum(v) / len(v) for v in families.values()]
    print(f"jobs: {len(cases)} rows of {len(means)} families, {100 * spread_of_next(means):.1f} % for one more")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wall = truth.Wall(args.build, folder, [])
        report_host(wall.run_all(pool, host_cases()))
        report_compiled(wall.run_all(pool, compiled_cases()))
        report_jobs(wall.run_all(pool, truth_tables.vtrain("vtrain_ground_truth_single")()[::FITTED]))


if __name__ == "__main__":
    main()
