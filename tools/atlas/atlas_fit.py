#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the atlas to truth/kernels and writes src/models/compute/atlas/atlas_table.bin.

    tools/atlas/atlas_fit.py [--chips A,B --keep] [--ours] [--few-bits] [--served] [--aligned] [--leave-out MODELS]

Every class is fitted several times with whole families of rows left out; the predictions for these rows give its 90 %
interval and its errors, which a fit of whole chips, or of all our rows, writes to truth/tables/kernels_left_out.csv for
`make truth`.  The class in the table is fitted to all rows.  docs/design/atlas.md has the details.  Needs numpy and
scipy; the build does not run it."""

import argparse
import pathlib
import struct
import sys

import numpy as np
from scipy.spatial import cKDTree

import atlas_attention
import atlas_memory
import atlas_rows
from atlas_model import (ATTENTION_HIGH, ATTENTION_LOW, ATTENTION_START, CHIPS, CONV_HIGH, CONV_LOW, CONV_START, DECODE_HIGH, DECODE_LOW,
                         DECODE_START, EXPERTS_HIGH, EXPERTS_LOW, EXPERTS_START, GEMM_HIGH, GEMM_LOW, GEMM_START, MEMORY_HIGH, MEMORY_LOW,
                         MEMORY_START, OPTIMIZER_HIGH, OPTIMIZER_LOW, OPTIMIZER_START, OWN_ATTENTION_HIGH, OWN_ATTENTION_LOW,
                         OWN_ATTENTION_START, OWN_HIGH, OWN_LOW, OWN_START, PASS_HIGH, PASS_LOW, PASS_START, ROW_SUM_HIGH, ROW_SUM_LOW, ROW_SUM_START, SCATTER_HIGH, SCATTER_LOW, SCATTER_START,
                         SOFTMAX_HIGH, SOFTMAX_LOW, SOFTMAX_START, SUM_HIGH, SUM_LOW, SUM_START, TYPES, attention_base, conv_base,
                         decode_base, errors, experts_base, fill_holes, fit_constants, gemm_base, interpolate, memory_base, optimizer_base,
                         own_attention_base, own_gemm_base, pass_base, row_sum_base, scatter_base, smooth_grid, softmax_base, sum_base)

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHIP_NUMBER = {name: i for i, name in enumerate(["h200", "h100", "a100", "b200", "gb200", "b300", "gb300", "l40s", "rtx-pro-6000", "b60"])}
TYPE_NUMBER = {name: i for i, name in enumerate(["bf16", "fp16", "fp32", "tf32", "fp8", "fp8_block", "mxfp8", "nvfp4", "mxfp4", "int8",
                                                 "w8a16", "w4a16", "fp64"])}
(GEMM, GEMM_VARIANT, GEMM_OWN, GEMM_BATCHED, GEMM_COLD, ATTENTION, DECODE, ROWS, BYTES, COLD, MOE, CONV) = range(1, 13)
FOLDS = 6


def in_few_bits(number):
    return number >> 16 & 255 in (GEMM, GEMM_OWN) and list(TYPE_NUMBER)[number >> 8 & 255] in QUANTISED


def is_served(number):
    variant = number & 255
    return list(CHIP_NUMBER)[number >> 24] != "h200" and number >> 16 & 255 == DECODE and variant & (atlas_attention.COLD | atlas_attention.MIXED)


def is_aligned(number):
    group, kind = number >> 16 & 255, number >> 8 & 255
    return list(CHIP_NUMBER)[number >> 24] == "h200" and group == GEMM_OWN and kind == TYPE_NUMBER["bf16"] and number & 255 >= OWN_ALIGNED


def is_public(number):
    group, kind, variant = number >> 16 & 255, number >> 8 & 255, number & 255
    if group == GEMM:
        return kind in (TYPE_NUMBER["bf16"], TYPE_NUMBER["fp8"], TYPE_NUMBER["fp8_block"])
    return group == MOE or group in (ATTENTION, DECODE) and variant & atlas_attention.PAGED


class Table:
    def __init__(self):
        self.classes = {}
        self.report = []
        self.rows_of = ""  # the rows that a report is about; "": the public ones
        self.missed = {}

    def add(self, key, constants, axes, values, low, high, rows, far=None):
        chip, group, kind, variant = key
        number = CHIP_NUMBER[chip] << 24 | group << 16 | TYPE_NUMBER[kind] << 8 | variant
        assert number not in self.classes, key
        self.classes[number] = (constants, axes, values, low, high, rows, far)

    def keep(self, path, is_kept):
        """Copies classes from a table."""
        old = path.read_bytes()
        count, = struct.unpack_from("<I", old, 8)
        for i in range(count):
            number, grid, plane, step, low, high, rows, dims, *rest = struct.unpack_from("<IIIfffII4I4I20f", old, 12 + 144 * i)
            if not is_kept(number):
                continue
            lengths, places, constants = rest[:dims], rest[4:4 + dims], rest[8:]
            axes = [np.frombuffer(old, "<f4", n, at).astype(float) for n, at in zip(lengths, places)]
            size = int(np.prod(lengths))
            values = np.frombuffer(old, "i1", size, grid).astype(float).reshape(lengths) * step
            far = np.frombuffer(old, "u1", size, plane).reshape(lengths) / 16 if plane else None
            self.classes[number] = (constants, axes, values, low, high, rows, far)

    def say(self, chip, kind, what, miss, inside=None):
        """miss: log of measured over predicted for left-out rows"""
        self.report.append((chip + self.rows_of, kind, what, miss, inside))
        print("%-13s %-10s %-28s %s%s" % (chip, kind, what, errors(miss), "" if inside is None else "  within %.0f %%" % (100 * np.mean(inside))),
              flush=True)

    def write(self, path):
        count = len(self.classes)
        assert count <= 384, "CLASSES of atlas_table.c"
        head = b"ORRATL01" + struct.pack("<I", count)
        body, at, records = bytearray(), len(head) + count * 144, []
        for number in sorted(self.classes):
            constants, axes, values, low, high, rows, far = self.classes[number]
            places = []
            for axis in axes:
                places.append(at + len(body))
                body += np.asarray(axis, "<f4").tobytes()
            step = max(np.abs(values).max() / 127, 1e-6)
            grid = at + len(body)
            body += np.clip(np.round(values / step), -127, 127).astype("i1").tobytes()
            plane = 0
            if far is not None:
                plane = at + len(body)
                body += np.clip(np.round(far * 16), 0, 255).astype("u1").tobytes()
            while len(body) % 4:
                body += b"\0"
            lengths = [len(a) for a in axes] + [0] * (4 - len(axes))
            places += [0] * (4 - len(axes))
            p = list(constants) + [0.0] * (20 - len(constants))
            records.append(struct.pack("<IIIfffII4I4I20f", number, grid, plane, step, low, high, rows, len(axes), *lengths, *places, *p))
            assert len(records[-1]) == 144
        path.write_bytes(head + b"".join(records) + bytes(body))
        print("%d classes, %d bytes" % (count, path.stat().st_size))


    def write_errors(self, path):
        """The errors of left-out rows: for each class, and for all rows of a chip together; in per cent."""
        head = "chip,type,class,rows,median_pct,p90_pct,within_pct"
        fitted = list(dict.fromkeys(r[0] for r in self.report))
        old = [line for line in path.read_text().splitlines()[1:] if line.split('"')[1] not in fitted] if path.exists() else []
        lines = []
        for chip in fitted:
            own = [(kind, what, miss[np.isfinite(miss)], inside) for name, kind, what, miss, inside in self.report if name == chip]
            own = [o for o in own if len(o[2])]
            if not own:
                continue
            judged = [o for o in own if o[3] is not None]  # the others repeat parts of these
            everything = ("all", "all", *(np.concatenate([o[i] for o in judged]) for i in (2, 3)))
            for kind, what, miss, within in [everything] + own:
                error = 100 * abs(np.expm1(-miss))
                share = "" if within is None else "%.0f" % (100 * np.mean(within))
                lines.append('"%s",%s,"%s",%d,%.1f,%.1f,%s' % (chip, kind, what, len(miss), np.median(error), np.percentile(error, 90), share))
        path.write_text("\n".join([head] + old + lines) + "\n")


def interval(miss):
    """5th and 95th percentile, never narrower than 3 % either way"""
    miss = miss[np.isfinite(miss)]
    if len(miss) < 8:
        return -0.5, 0.5
    return max(min(np.percentile(miss, 5), -0.03), -0.7), min(max(np.percentile(miss, 95), 0.03), 0.7)


def inside(miss, low, high):
    miss = miss[np.isfinite(miss)]
    return (miss >= low) & (miss <= high)


def folds_of(families, seed=3):
    names = sorted(set(families))
    order = np.random.default_rng(seed).permutation(len(names)) % FOLDS
    number = dict(zip(names, order))
    return np.array([number[f] for f in families])


def distance(axes, points):
    """Distance in octaves from each node to the nearest measured point."""
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))
    near, _ = cKDTree(points).query(nodes, p=np.inf)
    return near.reshape([len(a) for a in axes])


# ---- products ----


def figures(chip, kind):
    units, peak, rate, _ = CHIPS[chip]
    times, left, right = TYPES[kind]
    return units, peak * times * 1e6, rate * 1e3, left, right, 4 if kind in ("fp32", "tf32") else 2


def product_base(chip, kind, rows, p):
    units, peak, rate, left, right, out = figures(chip, kind)
    return gemm_base(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], left, right, out, units, peak, rate, p)


def own_base(kind, rows, p):
    """The base of our own products, with the tiles of their kernels."""
    units, peak, rate, left, right, out = figures("h200", kind)
    return own_gemm_base(*rows.T, left, right, out, units, peak, rate, CHIPS["h200"][3] * 1e6, p)


# Public products of these types start with the left factor in 16 bits: finding its maximum, scaling and casting take
# this many us, and us per million numbers.
QUANTISED = ("fp8", "fp8_block", "nvfp4")
QUANTISE_START, QUANTISE_LOW, QUANTISE_HIGH = [8.0, 1.5], [0.05, 0.001], [40.0, 20.0]


def public_base(chip, kind, rows, p):
    base = product_base(chip, kind, rows, p)
    return base + p[14] + p[15] * 1e-6 * rows[:, 1] * rows[:, 3] if kind in QUANTISED else base


def nodes_grid(points, values):
    """A grid whose nodes are the measured sizes."""
    axes = [np.unique(points[:, j]) for j in range(points.shape[1])]
    grid = np.full([len(a) for a in axes], np.nan)
    grid[tuple(np.searchsorted(axes[j], points[:, j]) for j in range(len(axes)))] = values
    return axes, fill_holes(grid)


def fit_public_products(table, chip, only=()):
    for kind, rows in atlas_rows.aic_gemm(chip).items():
        if only and kind not in only:
            continue
        if chip == "rtx-pro-6000" and kind == "fp8_block" and len(rows) < 2000:
            continue
        all_rows = np.column_stack([np.ones(len(rows)), rows[:, :3]])
        log_time = np.log(rows[:, 3])
        start, least, most = GEMM_START, GEMM_LOW, GEMM_HIGH
        if kind in QUANTISED:
            start, least, most = start + QUANTISE_START, least + QUANTISE_LOW, most + QUANTISE_HIGH
        p = fit_constants(lambda q, i: public_base(chip, kind, all_rows[i], q), start, least, most, log_time)
        left_over = log_time - np.log(public_base(chip, kind, all_rows, p))
        points = np.log2(rows[:, :3])
        # Whole columns of n, then of k, then of m are left out, and must be interpolated.
        miss = []
        for j in (1, 2, 0):
            values = np.unique(points[:, j])[1:-1]
            for part in range(4):
                out = np.isin(points[:, j], values[part::4])
                axes, grid = nodes_grid(points[~out], left_over[~out])
                miss.append(left_over[out] - interpolate(axes, grid, points[out]))
        miss = np.concatenate(miss)
        low, high = interval(miss)
        table.say(chip, kind, "products", miss, inside(miss, low, high))
        axes, grid = nodes_grid(points, left_over)
        table.add((chip, GEMM, kind, 0), p, axes, grid, low, high, len(rows))


COARSE = [np.array([0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17.0]), np.arange(5, 18.0), np.arange(5, 18.0)]
VARIANTS = {("nt", ""): 0, ("nn", ""): 1, ("tn", ""): 2, ("nt", "bias"): 3, ("nt", "act"): 4}


def prior_of(table, chip, kind):
    number = CHIP_NUMBER[chip] << 24 | GEMM << 16 | TYPE_NUMBER[kind] << 8
    constants, axes, values, *_ = table.classes[number]
    return lambda rows: np.log(product_base(chip, kind, rows, constants)) + interpolate(axes, values, np.log2(rows[:, 1:4]))


def fit_variants(points, variant, y, weight, train, stiff=(1.0, 3.0), ridge=0.05):
    """A shared part for all variants, then the cost added by each; one grid per variant."""
    shared = smooth_grid(COARSE, points[train], y[train], weight[train], [stiff[0]] * 3, 1e-3)
    base = interpolate(COARSE, shared, points)
    grids = {}
    for number in np.unique(variant):
        rows = train & (variant == number)
        grid = shared
        if rows.sum() >= 3:
            offset = np.average(y[rows] - base[rows], weights=weight[rows])
            grid = shared + offset + smooth_grid(COARSE, points[rows], y[rows] - base[rows] - offset, weight[rows], [stiff[1]] * 3, ridge)
        grids[number] = grid
    return grids


def fit_scattered(table, chip, key, what, function, start, low, high, points, log_time, families, weight, axes, stiff, ridge=0.02, step=None,
                  fitted=None):
    """Fits a class to scattered rows: constants, a smooth grid, folds by family.  Returns the predictions of left-out
    rows."""
    fold = folds_of(families)
    predicted = np.full(len(log_time), np.nan)
    usable = np.isfinite(log_time)

    def build(train):
        index = np.flatnonzero(train)
        if fitted is not None:
            p = fitted
        else:
            p = fit_constants(lambda q, i: function(q, index[i]), start, low, high, log_time[index], most=1500)
        left_over = log_time - np.log(function(p, np.arange(len(log_time))))
        grid = smooth_grid(axes, points[train], left_over[train], weight[train], [stiff] * len(axes) if np.isscalar(stiff) else stiff, ridge)
        return p, grid

    for number in range(FOLDS):
        out = usable & (fold == number)
        if not out.any() or (usable & ~out).sum() < 3:
            continue
        p, grid = build(usable & ~out)
        rows = np.flatnonzero(out)
        predicted[out] = np.log(function(p, rows)) + interpolate(axes, grid, points[out])
    miss = log_time - predicted
    bounds = interval(miss)
    p, grid = build(usable)
    table.add(key, p, axes, grid, *bounds, int(usable.sum()), distance(axes, points[usable]))
    table.say(chip, list(TYPE_NUMBER)[TYPE_NUMBER[key[2]]], what, miss, inside(miss, *bounds))
    if step is not None and step.any() and (~step).any():
        table.say(chip, key[2], what + ", in steps", miss[step])
    return predicted


def axis_over(values, spacing=1.0):
    low, high = np.floor(np.min(values) / spacing) * spacing, np.ceil(np.max(values) / spacing) * spacing
    return np.arange(low, high + spacing / 2, spacing)


OWN_ALIGNED, OWN_COLD = 4, 12  # of GEMM_OWN, with the variant; below are odd and even rows, warm and cold


def fit_our_products(table, only_aligned=False):
    rows = atlas_rows.products()
    bf16 = [r for r in rows if r["type"] == "bf16" and not r["batched"]]
    prior = prior_of(table, "h200", "bf16")
    sizes = np.array([[r["batch"], r["m"], r["n"], r["k"]] for r in bf16], float)
    points = np.log2(sizes[:, 1:])
    warm, cold = (np.array([r[key] for r in bf16]) for key in ("warm", "cold"))
    step = np.array([r["step"] for r in bf16])
    aligned = np.array([atlas_rows.alignment(r) >= 8 for r in bf16])
    variant = np.array([VARIANTS.get((r["layout"], r["form"]), 0) for r in bf16])
    families = np.array([r["family"] for r in bf16])
    fold = folds_of(families)
    weight = np.where(step, 8.0, 1.0)

    def left_out(log_time, usable, prior):
        """The errors of rows predicted from the other folds; prior: from rows that are never left out."""
        predicted = np.full(len(log_time), np.nan)
        for number in range(FOLDS):
            train = usable & (fold != number)
            base = prior(train)
            for v, grid in fit_variants(points, variant, np.nan_to_num(log_time - base), weight, train).items():
                out = usable & (fold == number) & (variant == v)
                predicted[out] = base[out] + interpolate(COARSE, grid, points[out])
        return log_time - predicted

    def own_constants(log_time, train):
        index = np.flatnonzero(train)
        return fit_constants(lambda p, i: own_base("bf16", sizes[index[i]], p), OWN_START, OWN_LOW, OWN_HIGH, log_time[index])

    def mean_base(p):
        return 0.5 * (np.log(own_base("bf16", sizes, p)) + prior(sizes))

    # They have their own base in addition to that of the public products, whose kernels another library chose: the mean
    # of both has the smallest error at the 90th percentile (warm: public 15.4, own 14.6, mean 13.7 %; cold: 16.5, 15.6,
    # 15.0 %).
    names = {v: "/".join(filter(None, k)) for k, v in VARIANTS.items()}
    for is_cold, log_time in ((False, np.log(warm)), (True, np.log(cold))):
        usable = aligned & np.isfinite(log_time)
        far = distance(COARSE, points[usable])
        miss = left_out(log_time, usable, lambda train: mean_base(own_constants(log_time, train)))
        if is_cold:
            table.say("h200", "bf16", "products, cold", miss[usable], inside(miss[usable], *interval(miss[usable])))
        else:
            table.say("h200", "bf16", "products, isolated", miss[usable & ~step])
            table.say("h200", "bf16", "products, in steps", miss[usable & step])
        p = own_constants(log_time, usable)
        for v, grid in fit_variants(points, variant, np.nan_to_num(log_time - mean_base(p)), weight, usable).items():
            rows_of = usable & (variant == v)
            bounds = interval(miss[rows_of])
            if not is_cold:
                table.say("h200", "bf16", "  " + names[v], miss[rows_of], inside(miss[rows_of], *bounds))
            table.add(("h200", GEMM_OWN, "bf16", (OWN_COLD if is_cold else OWN_ALIGNED) + int(v)), p, COARSE, grid, *bounds, int(rows_of.sum()), far)
    if only_aligned:
        return
    # Other chips use the cost of variants and of cold caches relative to the public products.
    for group, log_time in ((GEMM_VARIANT, np.log(warm)), (GEMM_COLD, np.log(cold))):
        usable = aligned & np.isfinite(log_time)
        far = distance(COARSE, points[usable])
        miss = left_out(log_time, usable, lambda train: prior(sizes))
        for v, grid in fit_variants(points, variant, np.nan_to_num(log_time - prior(sizes)), weight, usable).items():
            rows_of = usable & (variant == v)
            table.add(("h200", group, "bf16", int(v)), [], COARSE, grid, *interval(miss[rows_of]), int(rows_of.sum()), far)
    # unaligned: separate bases for rows of odd and of even numbers of elements
    even = np.array([atlas_rows.alignment(r) > 1 for r in bf16])
    for number, some, us in ((0, ~even, warm), (1, ~even, cold), (2, even, warm), (3, even, cold)):
        odd = ~aligned & np.isfinite(us) & some
        index = np.flatnonzero(odd)
        if len(index) >= 3:
            fit_scattered(table, "h200", ("h200", GEMM_OWN, "bf16", number), "products, %s rows%s" % ("even" if number > 1 else "odd", ", cold" if number % 2 else ""),
                          lambda p, i, index=index: own_base("bf16", sizes[index][i], p), OWN_START, OWN_LOW, OWN_HIGH, points[odd],
                          np.log(us[odd]), families[odd], weight[odd], COARSE, 2.0)
    # the other types, and batches
    for kind in ("fp32", "tf32", "fp8"):
        fit_our_type(table, kind, rows)
    some = [r for r in rows if r["type"] == "fp16" and not r["batched"] and np.isfinite(r["warm"])]
    s = np.array([[r["batch"], r["m"], r["n"], r["k"]] for r in some], float)
    fit_scattered_on(table, ("h200", GEMM_VARIANT, "fp16", 0), "products", s, prior(s), some)
    some = [r for r in rows if r["batched"] and r["type"] == "bf16" and np.isfinite(r["warm"])]
    s = np.array([[r["batch"], r["m"], r["n"], r["k"]] for r in some], float)
    fit_scattered_on(table, ("h200", GEMM_BATCHED, "bf16", 0), "products, batched", s, prior_of_base(table, s), some)


def fit_our_type(table, kind, rows):
    some = [r for r in rows if r["type"] == kind and not r["batched"] and np.isfinite(r["warm"])]
    s = np.array([[r["batch"], r["m"], r["n"], r["k"]] for r in some], float)
    # the public 8-bit products include quantization; ours do not
    is_own = kind == "fp8"
    fit_scattered(table, "h200", ("h200", GEMM_OWN if is_own else GEMM, kind, 0), "products",
                  lambda p, i: own_base(kind, s[i], p) if is_own else product_base("h200", kind, s[i], p),
                  *((OWN_START, OWN_LOW, OWN_HIGH) if is_own else (GEMM_START, GEMM_LOW, GEMM_HIGH)),
                  np.log2(s[:, 1:]), np.log([r["warm"] for r in some]), np.array([r["family"] for r in some]), np.ones(len(some)), COARSE, 0.5)


def prior_of_base(table, sizes):
    number = CHIP_NUMBER["h200"] << 24 | GEMM << 16
    return np.log(product_base("h200", "bf16", sizes, table.classes[number][0]))


def fit_scattered_on(table, key, what, sizes, log_prior, rows):
    families = np.array([r["family"] for r in rows])
    prior = np.exp(log_prior)
    return fit_scattered(table, key[0], key, what, lambda p, i: prior[i], None, None, None, np.log2(sizes[:, 1:]), np.log([r["warm"] for r in rows]),
                         families, np.ones(len(rows)), COARSE, 1.0, fitted=[])


# Rows whose kernels are modelled: start, least and most of their constants.
OWN_FORM = {"sum of rows": (ROW_SUM_START, ROW_SUM_LOW, ROW_SUM_HIGH), "sum of columns": (SUM_START, SUM_LOW, SUM_HIGH), "embedding backward": (SCATTER_START, SCATTER_LOW, SCATTER_HIGH),
            "rms": (MEMORY_START, MEMORY_LOW, [60, 0.8] + MEMORY_HIGH[2:]),  # else the many short rows of decoding make long ones as fast as the peak
            "softmax": (SOFTMAX_START, SOFTMAX_LOW, SOFTMAX_HIGH), "softmax odd": (SOFTMAX_START, SOFTMAX_LOW, SOFTMAX_HIGH)}


def fit_memory(table, only=None):
    units, _, rate, cache = CHIPS["h200"]
    rows = atlas_memory.rows()
    by_class = {}
    for r in rows:
        by_class.setdefault((r["group"], r["variant"], r["name"], r["type"]), []).append(r)
    for (group, variant, name, kind), some in sorted(by_class.items()):
        if len(some) < 3 or only and not only(name, kind):
            continue
        for cold in (False, True):
            log_time = np.log([r["cold" if cold else "warm"] for r in some])
            if np.isfinite(log_time).sum() < 3 or cold and name in ("h2d", "d2h", "adamw fused", "adamw foreach", "clip"):
                continue
            m, n, total, elements = (np.array([r[key] for r in some]) for key in ("m", "n", "bytes", "elements"))
            step = np.array([r["step"] for r in some])
            families = np.array([r["family"] for r in some])
            if len({f for f, t in zip(families, log_time) if np.isfinite(t)}) < 5:
                families = np.array([f + "/%d" % (i % 6) for i, f in enumerate(families)])
            by_rows = group == ROWS
            if by_rows:
                points = np.column_stack([np.log2(m), np.log2(n)])
                axes = [axis_over(points[:, 0], 2.0), axis_over(points[:, 1])]
                if "softmax" in name or "entropy" in name:  # a different kernel above 1,024 columns
                    axes[1] = np.sort(np.append(axis_over(points[:, 1], 0.5), 10.01))
            elif variant in (24, 25, 26):
                points = np.log2(m)[:, None]
                axes = [axis_over(points[:, 0], 2.0)]
            else:
                points = np.column_stack([np.log2(total), np.log2(total / elements)])
                axes = [axis_over(points[:, 0]), axis_over(points[:, 1], 0.5)]

            optimizer = not by_rows and variant in (24, 25, 26)
            words = np.array([r.get("words", 0.0) for r in some])
            layout = [] if by_rows else [np.array([r[key] for r in some]) for key in ("dims", "turned", "cast")]

            def function(p, i):
                if optimizer:
                    return optimizer_base(total[i], m[i], n[i], rate * 1e3, p)
                if by_rows and name == "sum of columns":
                    return sum_base(total[i], m[i], n[i], units, rate * 1e3, cache * 1e6, p)
                if by_rows and name == "sum of rows":
                    return row_sum_base(total[i], m[i], n[i], units, rate * 1e3, cache * 1e6, p)
                if by_rows and name == "embedding backward":
                    return scatter_base(m[i], n[i], words[i], ~step[i], atlas_memory.SIZE[kind], units, rate * 1e3, cache * 1e6, p)
                if by_rows and name in ("softmax", "softmax odd"):
                    return softmax_base(total[i], m[i], n[i], units, rate * 1e3, cache * 1e6, p)
                if by_rows:
                    return memory_base(total[i], elements[i], m[i], n[i], units, rate * 1e3, cache * 1e6, p)
                return pass_base(total[i], elements[i], *(x[i] for x in layout), rate * 1e3, cache * 1e6, p)

            weight = np.where(step, 1.5, 1.0)
            fit_scattered(table, "h200", ("h200", group, kind, variant + (128 if cold else 0)), name + (", cold" if cold else ""), function,
                          *(OWN_FORM.get(name, (MEMORY_START, MEMORY_LOW, MEMORY_HIGH)) if by_rows
                            else (OPTIMIZER_START, OPTIMIZER_LOW, OPTIMIZER_HIGH) if optimizer else (PASS_START, PASS_LOW, PASS_HIGH)), points, log_time, families, weight, axes, 1.0 if optimizer else 0.3, step=step)


def fit_attention(table, chip):
    units, peak, rate, _ = CHIPS[chip]
    rows = atlas_attention.context(chip)
    if len(rows) == 0:
        return
    buckets = np.array([atlas_attention.bucket(h) for h in rows[:, 3]])
    for number in np.unique(buckets):
        some = rows[buckets == number]
        if len(some) < 100:
            continue
        points = np.column_stack([np.log2(some[:, 4]), np.log2(some[:, 0] * some[:, 1]), np.log2(some[:, 2]), some[:, 5]])
        axes = [axis_over(points[:, 0]), axis_over(points[:, 1]), axis_over(points[:, 2], 2.0), np.unique(points[:, 3])]

        def function(p, i, some=some):
            return attention_base(*(some[i, j] for j in range(4)), some[i, 4], some[i, 4], some[i, 5], np.zeros(len(some))[i], units, peak * 1e6,
                                  rate * 1e3, p)

        # Training on Hopper runs cuDNN's kernels, which are our own rows; the public ones are vLLM's.
        variant = int(number) + (atlas_attention.PAGED if chip in ("h200", "h100") else 0)
        fit_scattered(table, chip, (chip, ATTENTION, "bf16", variant), "attention, head %d" % some[0, 3], function, ATTENTION_START, ATTENTION_LOW,
                      ATTENTION_HIGH, points, np.log(some[:, 6]), some[:, 7], np.ones(len(some)), axes, [0.02, 0.02, 0.1, 0.5], 1e-3)


# Shared keys are read from a cache if every head reads them.
MIXED_HIGH = [60, 6.0, 1.5, 30, 4096.0]


def fit_decode(table, chip, served=False):
    if not served:
        variant = atlas_attention.PAGED if chip == "h200" else 0
        fit_decode_rows(table, chip, atlas_attention.decode(chip), variant, "decode", DECODE_HIGH)
    fit_decode_rows(table, chip, atlas_attention.served(chip, False), atlas_attention.COLD, "decode, served", DECODE_HIGH)
    fit_decode_rows(table, chip, atlas_attention.served(chip, True), atlas_attention.MIXED, "decode, with prompts", MIXED_HIGH)


def fit_decode_rows(table, chip, rows, more, what, highest):
    units, peak, rate, _ = CHIPS[chip]
    if len(rows) == 0:
        return
    buckets = np.array([atlas_attention.bucket(h) for h in rows[:, 3]])
    for number in np.unique(buckets):
        some = rows[buckets == number]
        if len(some) < 100:
            continue
        points = np.column_stack([np.log2(some[:, 4]), np.log2(some[:, 0] * some[:, 1] / some[:, 2]), np.log2(some[:, 2])])
        axes = [axis_over(points[:, 0]), axis_over(points[:, 1]), axis_over(points[:, 2])]

        def function(p, i, some=some):
            return decode_base(*(some[i, j] for j in range(5)), units, peak * 1e6, rate * 1e3, p)

        fit_scattered(table, chip, (chip, DECODE, "bf16", int(number) + more), "%s, head %d" % (what, some[0, 3]), function, DECODE_START, DECODE_LOW, highest,
                      points, np.log(some[:, 5]), some[:, 6], np.ones(len(some)), axes, [0.02, 0.02, 0.05], 1e-3)


def fit_our_attention(table):
    units, peak, rate, _ = CHIPS["h200"]
    for back in (False, True):
        for head in (64, 128):
            some = [r for r in atlas_attention.ours() if r["backward"] == back and atlas_attention.bucket(r["head"]) == atlas_attention.bucket(head)]
            column = {key: np.array([float(r[key]) for r in some]) for key in ("batch", "heads", "group", "head", "q", "kv", "causal", "backward", "warm", "cold")}
            points = np.column_stack([np.log2(column["q"]), np.log2(column["batch"] * column["heads"]), np.log2(column["group"]), column["causal"]])
            axes = [axis_over(points[:, 0]), axis_over(points[:, 1], 2.0), axis_over(points[:, 2], 1.5), np.unique(points[:, 3])]
            step = np.array([r["step"] for r in some])
            families = np.array([r["family"] for r in some])

            def function(p, i, column=column):
                return own_attention_base(*(column[key][i] for key in ("batch", "heads", "group", "head", "q", "kv", "causal", "backward")), units,
                                          peak * 1e6, rate * 1e3, p)

            for cold in (False, True):
                variant = atlas_attention.bucket(head) + (atlas_attention.BACKWARD if back else 0) + (atlas_attention.COLD if cold else 0)
                fit_scattered(table, "h200", ("h200", ATTENTION, "bf16", variant), "our attention %s%d%s" % ("backward " if back else "", head, ", cold" if cold else ""),
                              function, OWN_ATTENTION_START, OWN_ATTENTION_LOW, OWN_ATTENTION_HIGH, points, np.log(column["cold" if cold else "warm"]), families,
                              np.where(step, 2.0, 1.0), axes, [0.1, 0.1, 0.3, 0.3], 1e-2, step=None if cold else step)
    for head in (64, 128):
        some = [r for r in atlas_attention.our_decode() if r["head"] == head]
        column = {key: np.array([float(r[key]) for r in some]) for key in ("batch", "heads", "group", "head", "kv", "warm", "cold")}
        points = np.column_stack([np.log2(column["kv"]), np.log2(column["batch"] * column["heads"] / column["group"]), np.log2(column["group"])])
        axes = [axis_over(points[:, 0]), axis_over(points[:, 1]), axis_over(points[:, 2], 2.0)]
        families = np.array([r["family"] + ("" if r["step"] else str(r["batch"])) for r in some])
        weight = np.where([r["step"] for r in some], 4.0, 1.0)

        def function(p, i, column=column):
            return decode_base(*(column[key][i] for key in ("batch", "heads", "group", "head", "kv")), units, peak * 1e6, rate * 1e3, p)

        for cold in (False, True):
            fit_scattered(table, "h200", ("h200", DECODE, "bf16", atlas_attention.bucket(head) + (atlas_attention.COLD if cold else 0)),
                          "our decode %d%s" % (head, ", cold" if cold else ""), function, DECODE_START, DECODE_LOW, DECODE_HIGH, points,
                          np.log(column["cold" if cold else "warm"]), families, weight, axes, [0.1, 0.1, 0.3], 1e-2)


def conv_rows():
    """Dicts: batch, k, n, side, window, stride, groups, backward, warm, family, step."""
    out = []
    for r in atlas_rows.kernels():
        if r["op"] in ("conv_fwd", "conv_bwd"):
            out.append({"batch": r["_b"], "k": r["_cin"], "n": r["_cout"], "side": r["_hw"], "window": r["_k"], "stride": r["_stride"], "groups": 1,
                        "backward": r["op"] == "conv_bwd", "warm": r["warm"], "family": r["family"], "step": False})
    for r in atlas_rows.operators():
        if r["op"] not in ("cudnn_convolution", "convolution_backward") or r["types"][0] != "BFloat16":
            continue
        back = r["op"] != "cudnn_convolution"
        x, w = (r["shapes"][1], r["shapes"][2]) if back else (r["shapes"][0], r["shapes"][1])
        lists = [a for a in r["arguments"] if a.startswith("[")]
        strides = [int(v) for v in lists[1 if not back else 0 if len(lists) < 3 else 1].strip("[]").split(",")] if len(lists) > 1 else [1]
        if back:
            stride = max(1, round(x[2] / r["shapes"][0][2]))
        else:
            stride = strides[0]
        if w[1] == 1 and x[1] > 1:
            continue
        out.append({"batch": x[0], "k": x[1], "n": w[0], "side": x[2], "window": w[2], "stride": stride, "groups": x[1] // w[1], "backward": back,
                    "warm": r["warm"], "family": r["family"], "step": True})
    return out


def fit_conv(table):
    units, peak, rate, cache = CHIPS["h200"]
    sizes = ("batch", "k", "n", "side", "window", "stride", "groups", "backward")
    for variant in range(4):
        some = [r for r in conv_rows() if r["backward"] == bool(variant % 2) and (r["k"] // r["groups"] % 8 != 0) == (variant > 1) and np.isfinite(r["warm"])]
        column = {key: np.array([float(r[key]) for r in some]) for key in sizes + ("warm",)}
        pixels = column["batch"] * np.ceil(column["side"] / column["stride"]) ** 2
        # plain products, windows, and strides are other kernels
        manner = np.where(column["stride"] > 1, 2.0, np.where(column["window"] > 1, 1.0, 0.0))
        points = np.column_stack([np.log2(pixels), np.log2(column["n"] / column["groups"]), np.log2(column["k"] / column["groups"] * column["window"] ** 2), manner])
        axes = [axis_over(points[:, j], 2.0) for j in range(3)] + [np.array([0.0, 1.0, 2.0])]
        families = np.array([r["family"] for r in some])
        step = np.array([r["step"] for r in some])

        def function(p, i, column=column):
            return conv_base(*(column[key][i] for key in sizes), units, peak * 1e6, rate * 1e3, cache * 1e6, p)

        fit_scattered(table, "h200", ("h200", CONV, "bf16", variant), "convolution%s%s" % (" backward" if variant % 2 else "", ", few channels" if variant > 1 else ""),
                      function, CONV_START, CONV_LOW, CONV_HIGH, points, np.log(column["warm"]), families,
                      np.where(step, 2.0, 1.0), axes, 0.2, 0.02, step=step)


def fit_experts(table, chip):
    units, peak, rate, _ = CHIPS[chip]
    for kind, rows in atlas_attention.experts(chip).items():
        if kind not in TYPES or len(rows) < 300:
            continue
        times, _, weight_bytes = TYPES[kind]
        points = np.column_stack([np.log2(rows[:, 0] / np.minimum(rows[:, 0], rows[:, 1])), np.log2(rows[:, 1]), np.log2(rows[:, 2]), np.log2(rows[:, 3])])
        # rows below one per expert would be another coordinate; the base includes it
        points[:, 0] += np.where(rows[:, 0] < rows[:, 1], np.log2(rows[:, 0] / rows[:, 1]), 0)
        axes = [axis_over(points[:, 0]), axis_over(points[:, 1]), axis_over(points[:, 2], 0.5), axis_over(points[:, 3])]

        def function(p, i, rows=rows):
            return experts_base(*(rows[i, j] for j in range(4)), weight_bytes, peak * times * 1e6, rate * 1e3, p)

        fit_scattered(table, chip, (chip, MOE, kind, 0), "experts", function, EXPERTS_START, EXPERTS_LOW, EXPERTS_HIGH, points, np.log(rows[:, 4]),
                      rows[:, 6], np.ones(len(rows)), axes, [0.05, 0.1, 0.2, 0.1], 1e-2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=str(ROOT / "src/models/compute/atlas/atlas_table.bin"))
    parser.add_argument("--chips", default=",".join(CHIP_NUMBER))
    parser.add_argument("--ours", action="store_true", help="only what our own rows give; with --keep")
    parser.add_argument("--served", action="store_true", help="only decoding as serving software was profiled; with --keep")
    parser.add_argument("--aligned", action="store_true", help="only our warm products in bf16 with aligned rows; with --keep")
    parser.add_argument("--few-bits", action="store_true", help="only products in 8 and 4 bits; with --keep")
    parser.add_argument("--keep", action="store_true", help="take what is not fitted over from the table that is there")
    parser.add_argument("--leave-out", default="", help="models, as gpt2_*,bert_*: rows profiled in their steps are not used")
    options = parser.parse_args()
    atlas_rows.LEFT_OUT = [p for p in options.leave_out.split(",") if p]
    table = Table()
    chips = options.chips.split(",")

    def is_kept(number):
        if list(CHIP_NUMBER)[number >> 24] not in chips:
            return True
        if options.few_bits:
            return not in_few_bits(number)
        if options.served:
            return not is_served(number)
        if options.aligned:
            return not is_aligned(number)
        return options.ours and is_public(number)

    if options.keep:
        table.keep(pathlib.Path(options.out), is_kept)
    for chip in [] if options.ours or options.aligned else chips:
        if options.served:
            fit_decode(table, chip, served=True)
            continue
        fit_public_products(table, chip, QUANTISED if options.few_bits else ())
        if options.few_bits:
            continue
        fit_attention(table, chip)
        fit_decode(table, chip)
        fit_experts(table, chip)
    table.rows_of = ", our rows"
    if options.served:
        pass
    elif options.aligned:
        fit_our_products(table, only_aligned=True)
    elif options.few_bits:
        if "h200" in chips:
            fit_our_type(table, "fp8", atlas_rows.products())
    elif "h200" in chips:
        fit_our_products(table)
        fit_memory(table)
        fit_our_attention(table)
        fit_conv(table)
    table.write(pathlib.Path(options.out))
    if not (options.few_bits or options.served or options.aligned or options.leave_out):
        table.write_errors(ROOT / "truth/tables/kernels_left_out.csv")


if __name__ == "__main__":
    sys.exit(main())
