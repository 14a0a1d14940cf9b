# SPDX-License-Identifier: Apache-2.0
"""truth_page.py - the errors of the tables, as lines for a terminal and as docs/truth.md."""

import csv
import statistics


def ranks(values):
    """Ranks in ascending order, from 0; equal values share their mean rank."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    out, i = [0.0] * len(values), 0
    while i < len(order):
        j = i
        while j + 1 < len(order) and values[order[j + 1]] == values[order[i]]:
            j += 1
        for k in order[i : j + 1]:
            out[k] = (i + j) / 2
        i = j + 1
    return out


def spearman(a, b):
    """Spearman's rank correlation; None for fewer than three values."""
    if len(a) < 3:
        return None
    x, y = ranks(a), ranks(b)
    mx, my = statistics.fmean(x), statistics.fmean(y)
    sxy = sum((u - mx) * (v - my) for u, v in zip(x, y))
    sxx, syy = sum((u - mx) ** 2 for u in x), sum((v - my) ** 2 for v in y)
    return sxy / (sxx * syy) ** 0.5 if sxx > 0 and syy > 0 else None


class Result:
    """The results of one table."""

    def __init__(self, table, cases):
        self.table, self.cases, self.name = table, cases, table.name
        self.done = [c for c in cases if c.predicted is not None]
        self.failed = [c for c in cases if c.predicted is None]
        errors = [c.error() for c in self.done]
        self.count = len(errors)
        self.mean = statistics.fmean(map(abs, errors)) if errors else float("nan")
        self.median = statistics.median(map(abs, errors)) if errors else float("nan")
        self.bias = statistics.fmean(errors) if errors else float("nan")
        self.order = spearman([c.measured for c in self.done], [c.predicted for c in self.done])
        self.worst = max(self.done, key=lambda c: abs(c.error())) if errors else None

    def order_text(self):
        return "-" if self.order is None else f"{self.order:.2f}"

    def line(self):
        worst = f"{self.worst.error():+6.1f} % {self.worst.label}" if self.worst else "-"
        refused = f", {len(self.failed)} refused" if self.failed else ""
        return (f"{self.name:24} {self.count:4} rows  mean {self.mean:5.1f} %  median {self.median:5.1f} %  "
                f"bias {self.bias:+6.1f} %  order {self.order_text()}  "
                f"worst {worst}  peer {self.table.peer}  asked {self.table.asked}{refused}")

    def rows(self):
        for c in self.cases:
            if c.predicted is None:
                yield f"    {c.label:60} {c.measured:12.4g}            - {c.unit}: {c.why}"
            else:
                yield f"    {c.label:60} {c.measured:12.4g} {c.predicted:12.4g} {c.unit:10} {c.error():+7.1f} %"


def svg(result):
    """Predicted against measured values, both on a logarithmic scale; the band is +-10 %."""
    import math

    points = [(c.measured, c.predicted) for c in result.done if c.measured > 0 and c.predicted > 0]
    if len(points) < 3:
        return ""
    low = math.log10(min(min(p) for p in points)) - 0.05
    high = math.log10(max(max(p) for p in points)) + 0.05
    size, pad = 240, 10

    def at(v):
        return pad + (math.log10(v) - low) / (high - low) * (size - 2 * pad)

    dots = "".join(f'<circle cx="{at(m):.1f}" cy="{size - at(p):.1f}" r="2"/>' for m, p in points)
    band = [(10**low, 10**low * f) for f in (0.9, 1.1)] + [(10**high, 10**high * f) for f in (1.1, 0.9)]
    area = " ".join(f"{at(x):.1f},{size - at(y):.1f}" for x, y in band)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 {size} {size}">'
            f'<rect width="{size}" height="{size}" fill="#fff" stroke="#888"/><polygon points="{area}" fill="#cde"/>'
            f'<g fill="#036" fill-opacity="0.6">{dots}</g></svg>\n')


HEAD = """# Truth: measurements and predictions

Written by `make truth`; do not edit. The rows of `truth/tables` were run through `orrery stage`, `orrery serve` or `orrery
convert fx`, and `orrery run`, with the machine and the software that their sources name. Errors are of the step time (or
memory), in per cent of the measured value; positive means that the prediction is too high. Order is the rank correlation
(Spearman) of measured and predicted values. No constant is fitted to a table listed here, except for the rows that
`truth/README.md` names.

| table | rows | mean error | median | bias | order | worst row | best other tool | target |
|---|---|---|---|---|---|---|---|---|
"""


def page(results):
    lines = [HEAD]
    for r in results:
        worst = f"{r.worst.error():+.1f} % ({r.worst.label})" if r.worst else "-"
        lines.append(f"| {r.name} | {r.count} | {r.mean:.1f} % | {r.median:.1f} % | {r.bias:+.1f} % | {r.order_text()} | {worst} | "
                     f"{r.table.peer} | {r.table.asked} |\n")
    lines.append("\n")
    for r in results:
        lines.append(f"## {r.name}\n\n{r.table.about}\n\n")
        if len(r.done) > 2:
            lines.append(f"![measured and predicted](pictures/truth_{r.name}.svg)\n\n")
        if r.table.wrong:
            lines.append(f"Known errors: {r.table.wrong}\n\n")
        if r.failed:
            lines.append(f"{len(r.failed)} rows are rejected: {r.failed[0].why}\n\n")
        shown = sorted(r.done, key=lambda c: -abs(c.error())) if r.count > 40 else r.done
        lines.append(f"| row | measured | predicted | error |\n|---|---|---|---|\n")
        for c in shown[:40]:
            lines.append(f"| {c.label} | {c.measured:.4g} {c.unit} | {c.predicted:.4g} {c.unit} | {c.error():+.1f} % |\n")
        lines.append(f"\nThe {min(40, len(shown))} worst of {r.count} rows.\n\n" if r.count > 40 else "\n")
    return "".join(lines)


def is_covered(case):
    low, high = case.made["interval_ns"]
    return low <= case.measured * 1e6 <= high


def intervals(results):
    """The share of measured values inside the 90 % intervals."""
    lines = ["## Intervals\n\n`orrery run` on a chip prints a 90 % interval. The table has the share of rows inside it, and its "
             "mean half width:\n\n| table | rows | inside | half width |\n|---|---|---|---|\n"]
    for r in results:
        known = [c for c in r.done if c.made and c.made.get("interval_ns") and c.measures == "time"]
        if not known:
            continue
        inside = 100 * statistics.fmean(map(is_covered, known))
        width = 100 * statistics.fmean((c.made["interval_ns"][1] - c.made["interval_ns"][0]) / 2e6 / c.predicted for c in known)
        lines.append(f"| {r.name} | {len(known)} | {inside:.0f} % | {width:.1f} % |\n")
    return "".join(lines)


def kernels(path):
    """Errors of kernels left out of the fit of their class, by chip."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = ["\n## Kernels\n\nKernels of families left out of the fit of their class (six fits, "
             "each without a sixth of the families; `tools/atlas/atlas_fit.py` writes these figures when it fits). Errors are in per cent "
             "of the measured time; inside: share of rows inside the 90 % interval.\n\n| chip | type | class | rows | median | 90th percentile | inside |\n"
             "|---|---|---|---|---|---|---|\n"]
    for r in rows:
        name = f"**{r['chip']}**" if r["type"] == "all" else r["chip"]
        inside = f"{r['within_pct']} %" if r["within_pct"] else "-"
        lines.append(f"| {name} | {r['type']} | {r['class']} | {int(r['rows']):,} | {r['median_pct']} % | {r['p90_pct']} % | {inside} |\n")
    return "".join(lines)


def kernel_lines(path):
    """One line per chip, for a terminal."""
    with open(path, newline="", encoding="utf-8") as file:
        for r in csv.DictReader(file):
            if r["type"] == "all":
                ours = r["chip"].endswith("our rows")
                yield (f"kernels {r['chip']:24} {int(r['rows']):7} rows left out  median {float(r['median_pct']):5.1f} %  "
                       f"p90 {float(r['p90_pct']):5.1f} %  asked {'5 / 15 %' if ours else '6 / 20 %'}")


def draw(results, folder):
    for r in results:
        text = svg(r)
        if text:
            (folder / f"truth_{r.name}.svg").write_text(text)


def limits(results):
    head = "# Mean errors in per cent of `make truth` when this was written; a test fails if one has grown.\n"
    return head + "table,mean_error_percent\n" + "".join(f"{r.name},{r.mean:.1f}\n" for r in results if r.count)
