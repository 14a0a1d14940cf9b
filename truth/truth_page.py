# SPDX-License-Identifier: Apache-2.0
"""truth_page.py - the errors of a table, as lines for a terminal and as docs/truth.md."""

import statistics


class Result:
    """One table, run."""

    def __init__(self, table, cases):
        self.table, self.cases, self.name = table, cases, table.name
        self.done = [c for c in cases if c.predicted is not None]
        self.failed = [c for c in cases if c.predicted is None]
        errors = [c.error() for c in self.done]
        self.count = len(errors)
        self.mean = statistics.fmean(map(abs, errors)) if errors else float("nan")
        self.median = statistics.median(map(abs, errors)) if errors else float("nan")
        self.bias = statistics.fmean(errors) if errors else float("nan")
        self.worst = max(self.done, key=lambda c: abs(c.error())) if errors else None

    def line(self):
        worst = f"{self.worst.error():+6.1f} % {self.worst.label}" if self.worst else "-"
        refused = f", {len(self.failed)} refused" if self.failed else ""
        return (f"{self.name:24} {self.count:4} rows  mean {self.mean:5.1f} %  median {self.median:5.1f} %  "
                f"bias {self.bias:+6.1f} %  worst {worst}  peer {self.table.peer}  asked {self.table.asked}{refused}")

    def rows(self):
        for c in self.cases:
            if c.predicted is None:
                yield f"    {c.label:60} {c.measured:12.4g}            - {c.unit}: {c.why}"
            else:
                yield f"    {c.label:60} {c.measured:12.4g} {c.predicted:12.4g} {c.unit:10} {c.error():+7.1f} %"


def svg(result):
    """Predicted over measured, both on a logarithmic scale; the band is +-10 %."""
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


HEAD = """# Truth: what was measured, and what orrery says

Written by `make truth`; do not edit. Every row of `truth/tables` was run through `orrery stage` or `orrery serve` and
`orrery run` with the machine and the software that its source names. Errors are of the step time (memory: of the bytes),
in per cent of the measured value; positive means that orrery is too slow. No constant is fitted to a table that is listed
here, but for the rows of `vtrain-single` that `truth/README.md` names.

| table | rows | mean error | median | bias | worst row | best peer | asked |
|---|---|---|---|---|---|---|---|
"""


def page(results):
    lines = [HEAD]
    for r in results:
        worst = f"{r.worst.error():+.1f} % ({r.worst.label})" if r.worst else "-"
        lines.append(f"| {r.name} | {r.count} | {r.mean:.1f} % | {r.median:.1f} % | {r.bias:+.1f} % | {worst} | "
                     f"{r.table.peer} | {r.table.asked} |\n")
    lines.append("\n")
    for r in results:
        lines.append(f"## {r.name}\n\n{r.table.about}\n\n")
        if r.table.wrong:
            lines.append(f"Where it is wrong, and why: {r.table.wrong}\n\n")
        if r.failed:
            lines.append(f"{len(r.failed)} rows are refused: {r.failed[0].why}\n\n")
        shown = sorted(r.done, key=lambda c: -abs(c.error())) if r.count > 40 else r.done
        lines.append(f"| row | measured | orrery | error |\n|---|---|---|---|\n")
        for c in shown[:40]:
            lines.append(f"| {c.label} | {c.measured:.4g} {c.unit} | {c.predicted:.4g} {c.unit} | {c.error():+.1f} % |\n")
        lines.append(f"\nThe {min(40, len(shown))} worst of {r.count} rows.\n\n" if r.count > 40 else "\n")
    return "".join(lines)


def limits(results):
    head = "# Mean errors in per cent that `make truth` had when this was written; a test fails when one has grown.\n"
    return head + "table,mean_error_percent\n" + "".join(f"{r.name},{r.mean:.1f}\n" for r in results if r.count)
