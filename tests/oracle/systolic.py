#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executable specification of the systolic-array compute model.

Follows docs/spec/scale-sim.md: sections 1-5 (generation v1) and 6.1-6.3
(generation v2, interface mode CALC).  The aim is to be easy to compare with,
not fast: every operand access is enumerated.  `v1_cycles` and `v2_cycles` are
closed forms and are fast for any size.

    systolic.py v1 -arch_config=FILE -network=FILE [-out=FILE]
    systolic.py v2 -c FILE -t FILE [-i conv|gemm] [-out FILE]
    systolic.py --random SEED --output_dir DIR
    systolic.py --check v1|v2 FILE.csv [--cycles_only]

Reports are CSV with the columns of the golden data (scale-sim), one
row per layer.
"""
import argparse
import configparser
import csv
import math
import os
import random
import sys
from dataclasses import dataclass

FIRST_FILL_RATE = 10     # words per clock assumed before the first access (4.1, 6.3)
LAST_DRAIN_RATE = 10     # words per clock after the last write (4.2)
SETS = 100               # v2 read buffers are cut in this many sets (6.3)

INPUT_COLUMNS = ("id array_h array_w ifmap_kb filter_kb ofmap_kb dataflow layer "
                 "ifmap_h ifmap_w filt_h filt_w channels num_filt stride").split()
V1_COLUMNS = INPUT_COLUMNS + (
    "cycles util_pct avg_dram_ifmap avg_dram_filter avg_dram_ofmap "
    "avg_sram_read avg_sram_write max_dram_ifmap max_dram_filter "
    "max_dram_ofmap max_sram_read max_sram_write dram_ifmap_start "
    "dram_ifmap_stop dram_ifmap_words dram_filter_start dram_filter_stop "
    "dram_filter_words dram_ofmap_start dram_ofmap_stop dram_ofmap_words "
    "sram_write_start sram_write_stop sram_write_words sram_read_start "
    "sram_read_stop sram_read_words").split()
V2_COLUMNS = INPUT_COLUMNS + (
    "total_cycles stall_cycles overall_util_pct mapping_eff_pct "
    "compute_util_pct avg_sram_ifmap avg_sram_filter avg_sram_ofmap "
    "avg_dram_ifmap avg_dram_filter avg_dram_ofmap").split() + [
        f"{level}_{what}_{field}" for level in ("sram", "dram")
        for what in ("ifmap", "filter", "ofmap")
        for field in ("start", "stop", "count")]


def cdiv(a, b):
    """Integer division rounded up."""
    return -(-a // b)


@dataclass
class Machine:
    """An array and its three buffers (sizes in words of one byte)."""
    rows: int
    cols: int
    flow: str
    ifmap_words: int
    filter_words: int
    ofmap_words: int
    ifmap_at: int = 0
    filter_at: int = 10_000_000
    ofmap_at: int = 20_000_000


@dataclass
class Conv:
    """One layer (section 1); a GEMM is a conv with a 1 x K window."""
    name: str
    ih: int
    iw: int
    fh: int
    fw: int
    ch: int
    nf: int
    sh: int = 1
    sw: int = 1

    @property
    def window(self):
        return self.fh * self.fw * self.ch

    def exact_output(self):
        """Output height and width before rounding, in double precision."""
        return (self.ih - self.fh + self.sh) / self.sh, (self.iw - self.fw + self.sw) / self.sw

    def offset_in_window(self, k):
        """Distance of window element k from the window's first word."""
        line, within = divmod(k, self.fw * self.ch)
        return line * self.iw * self.ch + within

    def pixel_base(self, pixel, out_w):
        """First word of the window of an output pixel."""
        y, x = divmod(pixel, out_w)
        return (y * self.sh * self.iw + x * self.sw) * self.ch


# --------------------------------------------------------------- v1, section 2

class OsGeometry:
    """Fold counts of output stationary (section 2.1)."""

    def __init__(self, m, conv):
        exact_h, exact_w = conv.exact_output()
        self.m, self.conv = m, conv
        self.T = conv.window
        self.out_w = int(exact_w)
        self.e2 = int(exact_h) * int(exact_w)
        self.V = cdiv(conv.nf, m.cols)
        self.H = cdiv(self.e2, m.rows)
        self.Hf = math.ceil(exact_h * exact_w / m.rows)
        self.row_tail = self.e2 - (self.H - 1) * m.rows     # rows used by the last row fold
        self.col_tail = conv.nf - (self.V - 1) * m.cols     # columns of the last column fold

    def t_col(self):
        end = self.col_tail - 1 + self.V * self.Hf * self.T
        if self.V > 1:
            end = max(end, self.m.cols - 1 + (self.V - 1) * self.Hf * self.T)
        return end

    def t_row(self):
        end = self.row_tail - 1 + self.H * self.T
        if self.H > 1:
            end = max(end, self.m.rows - 1 + (self.H - 1) * self.T)
        return (self.V - 1) * self.H * self.T + end

    def degenerate(self):
        """True in the two regimes of section 3.4."""
        idle = self.m.rows - self.row_tail
        return self.T == 1 or (self.V >= 3 and self.H >= 2 and idle > self.H * self.T)

    def write_length(self):
        """Closed form of the write side (end of 2.1)."""
        tail, pitch = self.row_tail, max(self.T, self.m.rows)
        start = self.T + min(self.m.cols, self.conv.nf) - 1 + (self.H - 1) * pitch
        if self.V > 2:
            start += (self.V - 2) * (max(self.T - tail + 1, tail) + (self.H - 1) * pitch)
        if self.V > 1:
            narrower = self.m.cols - self.col_tail
            start += max(self.T - tail + 1 - narrower, tail) + (self.H - 1) * pitch
        return start + tail


def sum_folds(cost, outer, inner, outer_full, outer_tail, inner_full, inner_tail):
    """Sum of cost(inner extent, outer extent) over a grid whose last row and column are short."""
    column = lambda width: (inner - 1) * cost(inner_full, width) + cost(inner_tail, width)
    return (outer - 1) * column(outer_full) + column(outer_tail)


def v1_cycles(m, conv):
    """Closed-form v1 cycle count (sections 2.1-2.3)."""
    T, R, C, nf = conv.window, m.rows, m.cols, conv.nf
    if m.flow == "os":
        g = OsGeometry(m, conv)
        read = g.t_col() if T == 1 else max(g.t_col(), g.t_row())
        return max(read, g.write_length())
    exact_h, exact_w = conv.exact_output()
    e2 = int(exact_h) * int(exact_w)
    wide = nf if m.flow == "ws" else e2          # what the columns hold
    if T > R:
        H, V = cdiv(T, R), cdiv(wide, C)
        if m.flow == "ws":
            streamed = int(exact_h * exact_w)
            cost = lambda rows, cols: rows + max(streamed, cols + rows + e2)
        else:
            cost = lambda rows, cols: 2 * rows + nf + cols - 1
        return sum_folds(cost, V, H, C, wide - (V - 1) * C, R, T - (H - 1) * R)
    stack = R // T
    V = cdiv(wide, stack * C)
    total = 0
    for left, times in ((stack * C, V - 1), (wide - (V - 1) * stack * C, 1)):
        p = cdiv(left, C)
        across = (C if p > 1 else left) if m.flow == "ws" else min(C, left) - 1
        total += times * (p * T + T + across + (e2 if m.flow == "ws" else nf))
    return total


# ------------------------------------------------------ v1, traffic (3 and 4)

class ReadFill:
    """DRAM side of an operand buffer (section 4.1)."""

    def __init__(self, size):
        self.size, self.held = size, set()
        self.fill_from, self.fill_to = None, 0
        self.words = self.peak = 0
        self.start = self.stop = None

    def access(self, clk, address):
        if address in self.held:
            return
        if len(self.held) + 1 > self.size:
            self.flush()
            self.fill_from, self.fill_to = self.fill_to, clk
        self.held.add(address)

    def flush(self):
        amount = len(self.held)
        if not amount:
            return
        if self.fill_from is None:
            self.fill_from = self.fill_to - cdiv(amount, FIRST_FILL_RATE)
        rate = cdiv(amount, self.fill_to - self.fill_from)
        if self.start is None:
            self.start = self.fill_from
        self.stop = self.fill_from + cdiv(amount, rate) - 1
        self.peak = max(self.peak, min(rate, amount))
        self.words += amount
        self.held = set()


class WriteDrain:
    """DRAM side of the output buffer (section 4.2)."""

    def __init__(self, size):
        self.size = size
        self.filling, self.draining = set(), set()
        self.swapped_at = self.now = 0
        self.words = self.peak = 0
        self.start = self.stop = None

    def row(self, clk, addresses):
        self.now = clk
        if len(self.filling) + len(addresses) >= self.size:
            if self.draining:
                span = clk - self.swapped_at
                self._drain(self.draining, self.swapped_at + 1, cdiv(len(self.draining), span))
            self.filling, self.draining = set(), self.filling
            self.swapped_at = clk
        self.filling.update(addresses)

    def finish(self):
        after = self.now
        if self.draining:
            after = max(after, self._drain(self.draining, self.swapped_at + 1, LAST_DRAIN_RATE))
        if self.filling:
            self._drain(self.filling, after + 1, LAST_DRAIN_RATE)

    def _drain(self, words, clk, rate):
        amount = len(words)
        if self.start is None:
            self.start = clk
        end = clk + cdiv(amount, rate)
        self.stop = end - 1
        self.peak = max(self.peak, min(rate, amount))
        self.words += amount
        return end


class Traffic:
    """Counters and buffers of one v1 layer (sections 3.2, 3.3, 4)."""

    def __init__(self, m):
        self.m = m
        self.ifmap, self.filter = ReadFill(m.ifmap_words), ReadFill(m.filter_words)
        self.ofmap = WriteDrain(m.ofmap_words)
        self.reads = self.read_rows = self.writes = self.widest_write = 0
        self.last_read = 0
        self.first_write = self.last_write = None

    def read(self, clk, addresses):
        """One row of the read trace; operands are told apart by address only."""
        m = self.m
        for a in addresses:
            if m.ifmap_at <= a < m.filter_at:
                self.ifmap.access(clk, a)
            elif m.filter_at <= a < m.ofmap_at:
                self.filter.access(clk, a)
        self.reads += len(addresses)
        self.read_rows += 1
        self.last_read = clk

    def write(self, clk, addresses, slots):
        """One row of the write trace; `slots` includes blank fields."""
        self.ofmap.row(clk, addresses)
        self.writes += slots
        self.widest_write = max(self.widest_write, slots)
        if self.first_write is None:
            self.first_write = clk
        self.last_write = clk

    def finish(self):
        self.ifmap.flush()
        self.filter.flush()
        self.ofmap.finish()


# ------------------------------------------------ v1, output stationary trace

def os_regular_pixels(g):
    """(pixel, element) pairs per clock, from the intervals of section 2.1."""
    R, T = g.m.rows, g.T
    per_column_fold = g.H * T
    for clk in range(max(g.t_col(), g.t_row())):
        active = []
        for r in range(min(R, g.e2, clk + 1)):
            v, y = divmod(clk - r, per_column_fold)
            if v < g.V and y < cdiv(g.e2 - r, R) * T:
                active.append(((y // T) * R + r, y % T))
        yield active


class Lane:
    """One array row of the machine of section 3.4 (phase None = parked)."""

    def __init__(self, r):
        self.row = self.pixel = r
        self.phase = -r
        self.fold = 0
        self.blocked = False

    def finish_element(self, g, above):
        """Advance by one clock after a possible read."""
        self.phase += 1
        if self.phase <= 0 or self.phase % g.T:
            return
        self.pixel += g.m.rows
        if self.pixel < g.e2:
            self.phase = 0
            return
        self.fold += 1
        if self.fold == g.V:
            self.phase = None
            return
        self.pixel = self.row
        self.blocked = above is not None and (self.fold > above.fold or above.blocked)
        self.phase = None if self.blocked else 0


def os_degenerate_pixels(g):
    """(pixel, element) pairs per clock in the regimes of section 3.4."""
    lanes = [Lane(r) for r in range(min(g.m.rows, g.e2))]
    pairs = list(zip([None] + lanes, lanes))
    clk = 0
    while True:
        active = []
        for above, lane in pairs:
            if lane.phase is None:
                continue
            if lane.phase >= 0:
                active.append((lane.pixel, lane.phase))
            lane.finish_element(g, above)
        for above, lane in pairs[1:]:
            if lane.blocked and not above.blocked and lane.fold == above.fold:
                lane.blocked = False
                lane.phase = None if above.phase is None else above.phase - 1
                break
        yield active
        clk += 1
        if clk >= g.t_col() and all(x.phase is None or x.phase <= 0 for x in lanes):
            return


def os_weights(g, clk):
    """(filter, element) pairs streaming in a clock (section 2.1)."""
    found = []
    for c in range(min(g.m.cols, g.conv.nf, clk + 1)):
        x = clk - c
        f = (x // (g.Hf * g.T)) * g.m.cols + c
        if f < g.conv.nf:
            found.append((f, x % g.T))
    return found


def os_write_blocks(g):
    """(start clock, first pixel, rows, first filter, width) per fold (2.1)."""
    R, C = g.m.rows, g.m.cols
    start = None
    for v in range(g.V):
        width = min(C, g.conv.nf - v * C)
        for h in range(g.H):
            rows = min(R, g.e2 - h * R)
            if start is None:
                start = g.T + width - 1
            elif h > 0:
                start += max(g.T, R)
            else:
                start = max(start - (g.row_tail + C - 1) + g.T + width, start + g.row_tail)
            yield start, h * R, rows, v * C, width


def os_run(m, conv, traffic):
    """Fill `traffic`; returns cycles, utilisation, widest SRAM read."""
    g = OsGeometry(m, conv)
    pixels = os_degenerate_pixels(g) if g.degenerate() else os_regular_pixels(g)
    busy = length = 0
    for clk, active in enumerate(pixels):
        weights = os_weights(g, clk)
        busy += len(active) * len(weights)
        traffic.read(clk, [conv.pixel_base(p, g.out_w) + conv.offset_in_window(k) for p, k in active]
                     + [m.filter_at + f * g.T + k for f, k in weights])
        length = clk + 1
    end = 0
    for start, pixel, rows, f0, width in os_write_blocks(g):
        for i in range(rows):
            at = m.ofmap_at + (pixel + i) * conv.nf + f0
            traffic.write(start + i, range(at, at + width), width)
        end = start + rows
    return max(length, end), 100 * busy / (m.rows * m.cols) / length, m.rows + m.cols


# --------------------------------------------- v1, stationary operand dataflows

@dataclass
class Fold:
    """One fold of ws or is: load, stream, drain (sections 2.2, 2.3, 4)."""
    loads: list              # address lists, one per clock
    streams: list            # same, after the loads
    lag: int                 # clocks from the end of the loads to the first write
    writes: list             # address lists, one per clock
    slots: int               # fields per write row
    mapped: int              # processing elements in use
    widest_read: int
    overlap: int = 0         # last write rows shared with the next fold


def ws_walk(conv, exact_w, count):
    """Window bases of ws with a folded window (first deviation of section 4)."""
    base, line, found = 0, conv.iw * conv.ch, []
    for e in range(count):
        found.append(base)
        if (e + 1) % exact_w == 0:
            base = (base // line + conv.sh) * line
        else:
            base += conv.sw * conv.ch
    return found


def ws_folds(m, conv):
    """Weight stationary: rows hold window elements, columns hold filters."""
    T, R, C, nf = conv.window, m.rows, m.cols, conv.nf
    exact_h, exact_w = conv.exact_output()
    out_w = int(exact_w)
    e2 = int(exact_h) * out_w
    folded = T > R
    stack = 1 if folded else R // T
    bases = (ws_walk(conv, exact_w, int(exact_h * exact_w)) if folded
             else [conv.pixel_base(p, out_w) for p in range(e2)])
    for v in range(cdiv(nf, stack * C)):
        left = nf - v * stack * C
        mapped = min(left, stack * C)
        p = cdiv(mapped, C)
        first_filter = v * C                    # also when stack > 1 (section 4)
        for k0 in range(0, T, R if folded else T):
            depth = min(R if folded else T, T - k0)
            ks = range(k0, k0 + depth)
            loads = [[m.filter_at + (first_filter + w * C + c) * T + k
                      for c in range(min(C, mapped - w * C))] for w in range(p) for k in ks]
            steps = [conv.offset_in_window(k) for k in reversed(ks)] * p
            streams = [[b + s for s in steps] for b in bases]
            out = m.ofmap_at + v * stack * C
            writes = [range(out + e * nf, out + e * nf + mapped) for e in range(e2)]
            yield Fold(loads, streams, depth + (C if p > 1 else min(left, C)), writes, mapped,
                       depth * mapped, max(R + mapped, depth + C) if folded else R + 2 * C)


def is_writes(conv, C, first_pixel, widths):
    """Write rows of an input-stationary fold, skewed by one clock per column."""
    rows = []
    for t in range(conv.nf + widths[0]):
        rows.append([(first_pixel + i * C + c) * conv.nf + t - c
                     for i, width in enumerate(widths) for c in range(width)
                     if 0 <= t - c < conv.nf])
    return rows


def is_folds(m, conv):
    """Input stationary: rows hold window elements, columns hold output pixels."""
    T, R, C, nf = conv.window, m.rows, m.cols, conv.nf
    exact_h, exact_w = conv.exact_output()
    out_w = int(exact_w)
    e2 = int(exact_h) * out_w
    folded = T > R
    stack = 1 if folded else R // T
    for v in range(cdiv(e2, stack * C)):
        done = v * stack * C
        mapped = min(e2 - done, stack * C)
        widths = [min(C, mapped - i) for i in range(0, mapped, C)]
        p = len(widths)
        drift = v * T if folded else 0          # filters are not rewound (section 4)
        for k0 in range(0, T, R if folded else T):
            depth = min(R if folded else T, T - k0)
            ks = range(k0, k0 + depth)
            loads = [[m.ifmap_at + conv.pixel_base(done + i * C + c, out_w) + conv.offset_in_window(k)
                      for c in range(width)] for i, width in enumerate(widths) for k in ks]
            streams = [[m.filter_at + f * T + drift + k for k in reversed(ks)] * p
                       for f in range(nf)]
            rows = is_writes(conv, C, C * v * p, widths)
            writes = [[m.ofmap_at + a for a in row] for row in rows]
            yield Fold(loads, streams, depth, writes, mapped, depth * mapped, R + C, overlap=1)


def fold_run(m, conv, traffic):
    """Fill `traffic` from ws or is folds; same result as os_run."""
    clk = weighted = widest = 0
    for fold in (ws_folds if m.flow == "ws" else is_folds)(m, conv):
        loaded = clk + len(fold.loads)
        for i, addresses in enumerate(fold.loads + fold.streams):
            traffic.read(clk + i, addresses)
        first = loaded + fold.lag
        for i, addresses in enumerate(fold.writes):
            traffic.write(first + i, addresses, fold.slots)
        end = max(loaded + len(fold.streams), first + len(fold.writes) - fold.overlap)
        weighted += fold.mapped * (end - clk)
        widest = max(widest, fold.widest_read)
        clk = end
    return clk, 100 * weighted / (m.rows * m.cols) / clk, widest


def v1_report(m, conv):
    """All report fields of section 5 for one layer, by golden column name."""
    t = Traffic(m)
    cycles, util, widest_read = (os_run if m.flow == "os" else fold_run)(m, conv, t)
    t.finish()
    sram_reads = t.reads + t.read_rows                   # 3.2: one extra per row
    delta = (max(t.ofmap.stop, t.last_write, t.last_read)
             - min(x.start for x in (t.ifmap, t.filter) if x.start is not None))
    report = {"cycles": cycles, "util_pct": util,
              "avg_sram_read": sram_reads / delta, "avg_sram_write": t.writes / delta,
              "max_sram_read": widest_read, "max_sram_write": t.widest_write,
              "sram_write_start": t.first_write, "sram_write_stop": t.last_write,
              "sram_write_words": t.writes, "sram_read_start": 0,
              "sram_read_stop": t.last_read, "sram_read_words": sram_reads}
    for what, side in (("ifmap", t.ifmap), ("filter", t.filter), ("ofmap", t.ofmap)):
        report.update({f"avg_dram_{what}": side.words / delta, f"max_dram_{what}": side.peak,
                       f"dram_{what}_start": side.start, f"dram_{what}_stop": side.stop,
                       f"dram_{what}_words": side.words})
    return report


# ------------------------------------------------------------- v2, section 6

class V2Geometry:
    """Mapping of a layer on the array (section 6.2)."""

    def __init__(self, m, conv):
        self.m, self.conv = m, conv
        self.out_h = cdiv(conv.ih - conv.fh + conv.sh, conv.sh)
        self.out_w = cdiv(conv.iw - conv.fw + conv.sw, conv.sw)
        e2, T, nf = self.out_h * self.out_w, conv.window, conv.nf
        self.Sr, self.Sc, self.Tt = {"os": (e2, nf, T), "ws": (T, nf, e2), "is": (T, e2, nf)}[m.flow]
        self.rf, self.cf = cdiv(self.Sr, m.rows), cdiv(self.Sc, m.cols)
        self.F = self.rf * self.cf
        self.L = self.Tt + m.rows + m.cols - 2 + (0 if m.flow == "os" else m.rows)

    def sram_counts(self):
        """Words read or written at the SRAM ports, as reported."""
        across, down, held = self.Tt * self.Sr * self.cf, self.Tt * self.Sc * self.rf, self.Sr * self.Sc
        if self.m.flow == "os":
            return across, down, held + self.F * (self.m.rows + self.m.cols)
        if self.m.flow == "ws":
            return across, held, down
        return held, across, down

    def ifmap_address(self, pixel, k):
        """Address of window element k of a pixel, or None outside the ifmap."""
        conv = self.conv
        y, x = divmod(pixel, self.out_w)
        line, within = divmod(k, conv.fw * conv.ch)
        if y * conv.sh + line >= conv.ih or x * conv.sw + within // conv.ch >= conv.iw:
            return None
        return self.m.ifmap_at + conv.pixel_base(pixel, self.out_w) + conv.offset_in_window(k)

    def filter_address(self, f, k):
        return self.m.filter_at + f * self.conv.window + k


def v2_cycles(m, conv):
    """Total cycles without stalls (section 6.2)."""
    g = V2Geometry(m, conv)
    return g.F * g.L - 1


def v2_demands(g):
    """Per clock: ifmap addresses, filter addresses, number of outputs (clock table of 6.2)."""
    R, C, Tt, flow = g.m.rows, g.m.cols, g.Tt, g.m.flow
    for j in range(g.cf):
        cols = range(j * C, min((j + 1) * C, g.Sc))
        for i in range(g.rf):
            rows = range(i * R, min((i + 1) * R, g.Sr))
            for t in range(g.L):
                if flow == "os":
                    ifmap = [g.ifmap_address(p, t - r) for r, p in enumerate(rows) if 0 <= t - r < Tt]
                    weights = [g.filter_address(f, t - c) for c, f in enumerate(cols) if 0 <= t - c < Tt]
                    leaving = (R - 1 - (t - c - (Tt - 1)) for c in range(len(cols)))
                    yield ifmap, weights, sum(0 <= r < len(rows) for r in leaving)
                    continue
                moving = [(t - R - r, k) for r, k in enumerate(rows) if 0 <= t - R - r < Tt]
                held = [(c, rows[R - 1 - t]) for c in cols] if 0 <= R - 1 - t < len(rows) else []
                if flow == "is":
                    moving, held = held, moving
                out = sum(0 <= t - c - (2 * R - 1) < Tt for c in range(len(cols)))
                yield ([g.ifmap_address(p, k) for p, k in moving],
                       [g.filter_address(f, k) for f, k in held], out)


class SetBuffer:
    """Read buffer with estimated prefetch (section 6.3)."""
    HALF = SETS // 2

    def __init__(self, words):
        self.set_words = words // SETS
        self.closed_in = {}              # address -> index of the closed set it joined last
        self.open = set()
        self.closed = 0
        self.oldest = 0                  # first set of the active half
        self.misses = 0
        self.first = self.last = None    # request clocks
        self.spans = []                  # charged DRAM intervals
        self.pending = None

    def request(self, clk, address):
        if self.first is None:
            self.first = clk
        self.last = clk
        index = self.closed_in.get(address, -1)
        if self.oldest <= index < min(self.closed, self.oldest + self.HALF) or address in self.open:
            return
        self.misses += 1
        self.open.add(address)
        if len(self.open) == self.set_words:
            self.closed_in.update(dict.fromkeys(self.open, self.closed))
            self.open = set()
            self.closed += 1
            if self.closed == self.oldest + self.HALF:
                self._charge_half(clk)

    def _charge_half(self, clk):
        if self.pending is None:
            length = cdiv(self.HALF * self.set_words, FIRST_FILL_RATE)
            self._charge(self.first - 1 - length, self.first - 2)
        else:
            self._charge(*self.pending)
        self.oldest += self.HALF
        self.pending = self.spans[-1][1] + 1, clk

    def _charge(self, start, stop):
        if stop < start:
            raise ZeroDivisionError("prefetch interval of length zero (6.3)")
        self.spans.append((start, stop))

    def finish(self):
        if self.pending is not None:
            self._charge(*self.pending)
            return
        sets = self.closed + (1 if self.open else 0)
        self._charge(-1 - cdiv(sets * self.set_words, FIRST_FILL_RATE), -2)

    def dram(self):
        """Start, stop, count; one clock of port latency is added."""
        return self.spans[0][0] + 1, self.spans[-1][1] + 1, self.misses


class LineBuffer:
    """Output buffer drained line by line (section 6.3)."""

    def __init__(self, words, line):
        self.line, self.free = line, words
        self.low_mark = cdiv(words, 2)
        self.drain_lines = cdiv(words - self.low_mark, line)
        self.waiting = []                # fill of each closed line, oldest first
        self.partial = 0
        self.busy_until = 0
        self.words = 0
        self.start = self.stop = None

    def write(self, clk, amount):
        """Store `amount` words; returns the clock at which the row is done."""
        for _ in range(amount):
            self.partial += 1
            self.free -= 1
            if self.partial == self.line:
                self._close()
            draining = clk < self.busy_until
            if draining and self.free <= 0:
                clk = self.busy_until
            if not draining and self.free < self.low_mark:
                self._close()
                self.busy_until = self._drain(clk)
        return clk

    def finish(self, clk):
        self._close()
        while self.waiting:
            clk = self._drain(clk) + 1

    def _close(self):
        if self.partial:
            self.waiting.append(self.partial)
            self.partial = 0

    def _drain(self, clk):
        batch, self.waiting = self.waiting[:self.drain_lines], self.waiting[self.drain_lines:]
        amount = (len(batch) - 1) * self.line + batch[-1]     # only the last line's padding counts
        self.words += amount
        self.free += amount
        if self.start is None:
            self.start = clk
        self.stop = clk + len(batch) - 1
        return self.stop


def v2_memory(g):
    """Run all demands through the buffers (section 6.3)."""
    m = g.m
    ifmap, weights = SetBuffer(m.ifmap_words), SetBuffer(m.filter_words)
    ofmap = LineBuffer(m.ofmap_words, m.cols)
    stalls = done = 0
    first_write = last_write = None
    for clk, (ifmap_now, weights_now, outputs) in enumerate(v2_demands(g)):
        at = clk + stalls
        for buffer, addresses in ((ifmap, ifmap_now), (weights, weights_now)):
            for a in addresses:
                if a is not None:
                    buffer.request(at, a)
        done = ofmap.write(at, outputs)
        stalls += done - at
        if outputs:
            first_write = done if first_write is None else first_write
            last_write = done
    ifmap.finish()
    weights.finish()
    ofmap.finish(done)
    return ifmap, weights, ofmap, stalls, done, first_write, last_write


def v2_report(m, conv):
    """All report fields of section 6.1 for one layer, by golden column name."""
    g = V2Geometry(m, conv)
    ifmap, weights, ofmap, stalls, total, first_write, last_write = v2_memory(g)
    cells, work = g.F * m.rows * m.cols, g.Sr * g.Sc * g.Tt
    charged = g.L if m.flow == "os" else g.L + m.cols - 1
    report = {"total_cycles": total, "stall_cycles": stalls,
              "overall_util_pct": 100 * work / (total * m.rows * m.cols),
              "mapping_eff_pct": 100 * g.Sr * g.Sc / cells,
              "compute_util_pct": 100 * work / (cells * charged)}
    clocks = ((ifmap.first + 1, ifmap.last + 1), (weights.first + 1, weights.last + 1),
              (first_write, last_write))
    dram = (ifmap.dram(), weights.dram(), (ofmap.start, ofmap.stop, ofmap.words))
    for what, (start, stop), count, outside in zip(("ifmap", "filter", "ofmap"), clocks,
                                                   g.sram_counts(), dram):
        report.update({f"avg_sram_{what}": count / total, f"sram_{what}_start": start,
                       f"sram_{what}_stop": stop, f"sram_{what}_count": count,
                       f"avg_dram_{what}": outside[2] / (outside[1] - outside[0] + 1),
                       f"dram_{what}_start": outside[0], f"dram_{what}_stop": outside[1],
                       f"dram_{what}_count": outside[2]})
    return report


# ------------------------------------------------------------ files and modes

def read_machine(path):
    """Configuration file of sections 5 and 6.1 (either generation)."""
    ini = configparser.ConfigParser()
    with open(path, encoding="utf-8") as f:
        ini.read_file(f)
    a = ini["architecture_presets"]
    first = lambda key: int(a[key].split(",")[0])
    size = lambda what: 1024 * first(what + ("sramszkb" if what + "sramszkb" in a else "sramsz"))
    return Machine(first("arrayheight"), first("arraywidth"), a["dataflow"].strip(),
                   size("ifmap"), size("filter"), size("ofmap"),
                   first("ifmapoffset"), first("filteroffset"), first("ofmapoffset"))


def read_network(path, generation="v1", kind="conv"):
    """Topology file of section 5 (v1) or 6.1 (v2)."""
    layers = []
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()[1:]
    for line in lines:
        fields = [x.strip() for x in line.split(",")]
        if generation == "v1":
            if len(fields) >= 9:
                v = [int(x) for x in fields[1:8]]
                layers.append(Conv(fields[0], *v, v[6]))
        elif line.strip():
            v = [int(x) for x in fields[1:-1]]
            if kind == "gemm":
                layers.append(Conv(fields[0], v[0], v[2], 1, v[2], 1, v[1]))
            else:
                layers.append(Conv(fields[0], *v[:7], v[7] if len(v) > 7 else v[6]))
    return layers


def table_rows(m, layers, generation):
    """Report rows as dictionaries keyed by golden column names."""
    make = v1_report if generation == "v1" else v2_report
    for i, c in enumerate(layers):
        row = dict(zip(INPUT_COLUMNS, (f"r{i:03d}", m.rows, m.cols, m.ifmap_words // 1024,
                                       m.filter_words // 1024, m.ofmap_words // 1024, m.flow, c.name,
                                       c.ih, c.iw, c.fh, c.fw, c.ch, c.nf, c.sh)))
        for key, value in make(m, c).items():
            row[key] = float(value) if key.endswith(("_start", "_stop")) else value
        yield row


def write_table(path, columns, rows):
    """CSV with full-precision numbers; `-` writes to standard output."""
    f = sys.stdout if path == "-" else open(path, "w", newline="", encoding="utf-8")
    out = csv.DictWriter(f, columns, lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
    if f is not sys.stdout:
        f.close()


def config_text(m, generation):
    """Configuration file accepted by the given generation."""
    suffix = "" if generation == "v1" else "kB"
    name = '"run"' if generation == "v1" else "run"
    text = f"[general]\nrun_name = {name}\n\n[architecture_presets]\n"
    text += f"ArrayHeight: {m.rows}\nArrayWidth: {m.cols}\n"
    for what, words in (("Ifmap", m.ifmap_words), ("Filter", m.filter_words), ("Ofmap", m.ofmap_words)):
        text += f"{what}SramSz{suffix}: {words // 1024}\n"
    text += f"IfmapOffset: {m.ifmap_at}\nFilterOffset: {m.filter_at}\nOfmapOffset: {m.ofmap_at}\n"
    text += f"Dataflow: {m.flow}\n"
    if generation == "v2":
        text += "Bandwidth: 10\nMemoryBanks: 1\n\n[run_presets]\nInterfaceBandwidth: CALC\n"
    return text


def random_layer(rng, name):
    """A small layer; often with T = 1, T <= R, or a stride that does not divide."""
    if rng.random() < 0.25:
        k = rng.randint(1, 60)
        return Conv(name, rng.randint(1, 80), k, 1, k, 1, rng.randint(1, 60))
    fh, fw = rng.choice((1, 1, 2, 3, 5)), rng.choice((1, 2, 3, 3))
    stride = rng.choice((1, 1, 2, 3))
    return Conv(name, fh + rng.randint(0, 12), fw + rng.randint(0, 12), fh, fw,
                rng.choice((1, 1, 2, 3, 8)), rng.choice((1, 2, 3, 5, 8, 17, 40)), stride, stride)


def random_case(seed, folder, count=6):
    """Write inputs and expected reports of one random configuration."""
    rng = random.Random(seed)
    sizes = [1024 * rng.choice((1, 1, 2, 4, 64)) for _ in range(3)]
    m = Machine(rng.choice((1, 2, 3, 4, 7, 8, 12, 16)), rng.choice((1, 2, 3, 4, 8, 14, 16)),
                rng.choice(("os", "ws", "is")), *sizes)
    layers = [random_layer(rng, f"L{i}") for i in range(count)]
    os.makedirs(folder, exist_ok=True)
    for generation, columns in (("v1", V1_COLUMNS), ("v2", V2_COLUMNS)):
        with open(os.path.join(folder, f"arch.{generation}.cfg"), "w", encoding="utf-8") as f:
            f.write(config_text(m, generation))
        rows = list(table_rows(m, layers, generation))
        write_table(os.path.join(folder, f"expected.{generation}.csv"), columns, rows)
        closed, key = (v1_cycles, "cycles") if generation == "v1" else (v2_cycles, "total_cycles")
        for c, row in zip(layers, rows):
            if closed(m, c) != row[key] - row.get("stall_cycles", 0):
                raise AssertionError(f"closed form differs from the schedule: {m} {c}")
    with open(os.path.join(folder, "network.csv"), "w", encoding="utf-8") as f:
        f.write("Layer name,ifmap height,ifmap width,filter height,filter width,"
                "channels,num filter,strides,\n")
        for c in layers:
            f.write(f"{c.name},{c.ih},{c.iw},{c.fh},{c.fw},{c.ch},{c.nf},{c.sh},\n")


def same_number(a, b):
    """Relative tolerance 1e-9, as the goldens ask for."""
    return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-12)


def check_table(path, generation, cycles_only):
    """Compare every row of a golden table; returns (rows, mismatching rows)."""
    total = bad = 0
    with open(path, newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            n = lambda key: int(row[key])
            m = Machine(n("array_h"), n("array_w"), row["dataflow"], 1024 * n("ifmap_kb"),
                        1024 * n("filter_kb"), 1024 * n("ofmap_kb"))
            c = Conv(row["layer"], n("ifmap_h"), n("ifmap_w"), n("filt_h"), n("filt_w"),
                     n("channels"), n("num_filt"), n("stride"), n("stride"))
            key, closed = ("cycles", v1_cycles) if generation == "v1" else ("total_cycles", v2_cycles)
            mine = {key: closed(m, c)} if generation == "v1" or cycles_only else {}
            wrong = [k for k in mine if not same_number(mine[k], row[k])]
            if not cycles_only:
                mine = (v1_report if generation == "v1" else v2_report)(m, c)
                wrong += [k for k in mine if not same_number(mine[k], row[k])]
            total += 1
            if wrong:
                bad += 1
                print("differs:", row["id"], [(k, row[k], mine.get(k)) for k in wrong])
    return total, bad


def main(argv):
    """Command line; see the module text."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("generation", nargs="?", choices=("v1", "v2"))
    p.add_argument("-arch_config", "-c", dest="config")
    p.add_argument("-network", "-t", dest="network")
    p.add_argument("-i", dest="kind", choices=("conv", "gemm"), default="conv")
    p.add_argument("-out", default="-")
    p.add_argument("--random", type=int, metavar="SEED")
    p.add_argument("--output_dir", default="case")
    p.add_argument("--check", nargs=2, metavar=("GENERATION", "CSV"))
    p.add_argument("--cycles_only", action="store_true")
    args = p.parse_args(argv)
    if args.check:
        total, bad = check_table(args.check[1], args.check[0], args.cycles_only)
        print(f"{args.check[1]}: {total} rows, {bad} mismatches")
        return 1 if bad else 0
    if args.random is not None:
        random_case(args.random, args.output_dir)
        return 0
    if not (args.generation and args.config and args.network):
        p.error("give a generation, a configuration and a network, or --random or --check")
    layers = read_network(args.network, args.generation, args.kind)
    write_table(args.out, V1_COLUMNS if args.generation == "v1" else V2_COLUMNS,
                table_rows(read_machine(args.config), layers, args.generation))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
