# SPDX-License-Identifier: Apache-2.0
"""The shape of times: the base of each kind, as src/models/compute/atlas/atlas_base.c has it, and smooth grids.

Needs numpy and scipy; for maintainers only, the build does not run it."""

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from scipy.optimize import least_squares

# name: units, 16-bit TFLOPS, GB/s, L2 MB, launch
CHIPS = {
    "h200": (132, 989.4, 4800, 60),
    "h100": (132, 989.4, 3350, 50),
    "a100": (108, 312, 2039, 40),
    "b200": (148, 2250, 7700, 126),
    "gb200": (152, 2500, 8000, 126),
    "b300": (148, 2250, 7750, 126),
    "gb300": (152, 2500, 8000, 126),
    "l40s": (142, 362, 864, 96),
    "rtx-pro-6000": (188, 467.8, 1597, 128),
    "b60": (20, 98.3, 456, 18),
}
# type: multiples of the 16-bit peak, bytes of the left factor, of the right one
TYPES = {
    "bf16": (1, 2, 2), "fp16": (1, 2, 2), "fp32": (0.0676, 4, 4), "tf32": (0.5, 4, 4), "fp8": (2, 1, 1),
    "fp8_block": (2, 1, 1), "nvfp4": (4, 0.5625, 0.5625), "int8": (2, 1, 1), "w8a16": (1, 2, 1),
    "w4a16": (1, 2, 0.5625), "mxfp4": (1, 2, 0.53125), "mxfp8": (2, 1.03125, 1.03125),
}
TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 64))
GEMM_START = [1.5, 0.75, 1.0, 1.0, 2.0, 0.5] + [0.85, 0.85, 0.8, 0.7, 0.7, 0.6, 0.45, 0.45]
GEMM_LOW = [0.3, 0.2, 0.1, 0.05, 0.1, 0.01] + [0.08] * 8
GEMM_HIGH = [12, 3.0, 12, 40.0, 60.0, 12] + [1.25] * 8


def soft_max(a, b):
    """Near the larger of the two; a fourth root, so that C needs square roots only."""
    return np.sqrt(np.sqrt(a**4 + b**4))


def gemm_base(batch, m, n, k, left, right, out, units, peak, rate, p):
    """p: launch us, memory efficiency, memory latency us, tile us, split us, ns per 64 of k, then efficiencies of tiles.
    peak: FLOP per us; rate: bytes per us."""
    memory = batch * (left * m * k + right * n * k + out * m * n) / (rate * p[1]) + p[2]
    best = np.full(np.shape(m), 1e30)
    for i, (tm, tn) in enumerate(TILES):
        tiles = batch * np.ceil(m / tm) * np.ceil(n / tn)
        work = 2.0 * tm * tn / (peak / units * p[6 + i]) + p[5] * 1e-3 / 64
        whole = np.ceil(tiles / units) * (work * k + p[3])
        best = np.minimum(best, whole)
        parts = np.minimum(np.floor(units / tiles), np.floor(k / 256))
        parts = np.where(tiles < units, parts, 1)
        safe = np.maximum(parts, 2)
        split = np.ceil(tiles * safe / units) * (work * k / safe + p[3]) + p[4] + 4 * batch * m * n * safe / rate
        best = np.where(parts >= 2, np.minimum(best, split), best)
    return p[0] + soft_max(best, memory)


def fit_constants(function, start, low, high, log_time, weight=None, most=4000, seed=1):
    """function(p, rows) -> us of the chosen rows; returns the constants."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(log_time))[:most]
    start, low, high = (np.log(np.asarray(x, float)) for x in (start, low, high))

    def miss(q):
        return np.log(function(np.exp(q), rows)) - log_time[rows]

    found = least_squares(miss, start, bounds=(low, high), loss="soft_l1", f_scale=0.1, diff_step=1e-3, max_nfev=40)
    return np.exp(found.x)


MEMORY_START = [2.0, 0.75, 0.5, 1.0, 0.5]
MEMORY_LOW = [0.8, 0.03, 0.02, 0.002, 0.0005]
MEMORY_HIGH = [60, 1.0, 3.0, 2000, 400]


def memory_base(total, elements, rows, width, units, rate, cache, p):
    """p: launch us, part of the memory's rate, more of it while the cache holds all, us per million elements, ns per element
    of a row that one block walks along.  total, cache: bytes; rows 0: no rows."""
    share = total / (0.7 * cache)
    memory = total / (rate * (p[1] + p[2] / (1 + share * share)))
    walk = np.where(rows > 0, np.ceil(rows / (4 * units)) * width * p[4] * 1e-3, 0)
    return p[0] + soft_max(soft_max(memory, elements * p[3] * 1e-6), walk)


ATTENTION_START = [4.0, 0.7, 1.0, 0.5, 0.6]
ATTENTION_LOW = [0.5, 0.05, 0.02, 0.01, 0.03]
ATTENTION_HIGH = [60, 1.5, 60, 10, 1.2]


def attention_base(batch, heads, group, head, q, kv, causal, backward, units, peak, rate, p):
    """Blocks of 128 queries.  p: launch us, part of the memory's rate, us per block, of a block for the last wave,
    efficiency."""
    pairs = np.where(causal > 0, np.where(kv >= q, q * (kv - q) + q * (q + 1) / 2, kv * (kv + 1) / 2), q * kv)
    times = np.where(backward > 0, 2.5, 1.0)
    flops = 4 * batch * heads * pairs * head * times
    moved = 2 * batch * head * (q * heads * np.where(backward > 0, 4, 2) + 2 * kv * heads / group * np.where(backward > 0, 2, 1))
    blocks = batch * heads * np.ceil(q / 128)
    one = peak / units * p[4]
    mean = flops * (128 * np.ceil(q / 128) / q) / blocks / one + p[2]
    longest = 4 * 128 * kv * head * times / one + p[2]
    compute = soft_max(mean * blocks / units, longest) + p[3] * mean
    return p[0] + soft_max(compute, moved / (rate * p[1]))


DECODE_START = [5.0, 0.7, 0.2, 1.0, 256.0]
DECODE_LOW = [0.5, 0.1, 0.01, 0.01, 32.0]
DECODE_HIGH = [60, 1.5, 1.5, 30, 4096.0]


def decode_base(batch, heads, group, head, kv, units, peak, rate, p):
    """p: launch us, part of the memory's rate, efficiency, us when keys are split, keys that one block takes at least."""
    kv_heads = heads / group
    blocks = batch * kv_heads
    parts = np.clip(np.minimum(units / blocks, kv / p[4]), 1, None)
    busy = np.minimum(1, blocks * parts / units)
    moved = 4 * batch * head * (kv * kv_heads + heads)
    flops = 4 * batch * kv_heads * np.maximum(group, 8) * kv * head
    work = soft_max(moved / (rate * p[1]), flops / (peak * p[2])) / busy**0.8
    return p[0] + work + np.where(parts > 1.5, p[3], 0)


EXPERT_TILES = (16, 32, 64, 128)
EXPERTS_START = [20.0, 0.7, 0.6, 0.15, 0.3, 0.4, 0.5]
EXPERTS_LOW = [2.0, 0.1, 0.05, 0.01, 0.02, 0.03, 0.05]
EXPERTS_HIGH = [200, 1.3, 4.0, 1.1, 1.1, 1.1, 1.1]


def experts_base(rows, experts, width, inner, weight_bytes, peak, rate, p):
    """A gated layer.  p: launch us, part of the memory's rate for weights, for activations, efficiencies of tiles."""
    used = np.minimum(rows, experts)
    each = rows / used
    weights = 3 * used * width * inner * weight_bytes / (rate * p[1])
    moved = 2 * rows * (4 * width + 3 * inner) / (rate * p[2])
    best = np.full(np.shape(rows), 1e30)
    for i, tile in enumerate(EXPERT_TILES):
        padded = used * np.ceil(each / tile) * tile
        best = np.minimum(best, 6 * padded * width * inner / (peak * p[3 + i]))
    return p[0] + soft_max(best, weights) + moved


OPTIMIZER_START = [3.0, 0.6, 40.0, 36.0]
OPTIMIZER_LOW = [0.5, 0.05, 5.0, 4.0]
OPTIMIZER_HIGH = [60, 1.0, 200.0, 400.0]


def optimizer_base(total, parameters, tensors, rate, p):
    """Blocks of 65,536 parameters, at most 320 in a launch.  p: launch us, part of the memory's rate, us of one block,
    tensors in a launch."""
    each = parameters / tensors
    blocks = tensors * np.ceil(each / 65536)
    launches = np.maximum(np.ceil(blocks / 320), tensors / p[3])
    block = p[2] * np.minimum(each, 65536) / 65536
    return p[0] + launches * soft_max(block, total / launches / (rate * p[1]))


# ---- grids ----


def place(axis, x):
    """Cell and fraction on an axis of ascending values; held at the ends."""
    x = np.clip(x, axis[0], axis[-1])
    if len(axis) == 1:
        return np.zeros(len(x), int), np.zeros(len(x))
    i = np.clip(np.searchsorted(axis, x, side="right") - 1, 0, len(axis) - 2)
    return i, (x - axis[i]) / (axis[i + 1] - axis[i])


def corners(axes, points):
    """(index into the flat grid, weight) of each corner of each point's cell."""
    cells = [place(a, x) for a, x in zip(axes, points.T)]
    sizes = [len(a) for a in axes]
    strides = [int(np.prod(sizes[j + 1:])) for j in range(len(axes))]
    out = []
    for c in range(1 << len(axes)):
        index, weight = 0, 1.0
        for j, (i, f) in enumerate(cells):
            up = (c >> j) & 1 if sizes[j] > 1 else 0
            if sizes[j] == 1 and (c >> j) & 1:
                weight = weight * 0
                continue
            index = index + (i + up) * strides[j]
            weight = weight * (f if up else 1 - f)
        out.append((np.broadcast_to(index, len(points)), np.broadcast_to(weight, len(points))))
    return out


def interpolate(axes, values, points):
    flat = values.ravel()
    return sum(flat[i] * w for i, w in corners(axes, points))


def smooth_grid(axes, points, values, weights, stiff, ridge):
    """Node values whose multilinear interpolation is near the values: second differences along each axis are held
    small (stiff, one number for each axis), and all values near 0 (ridge)."""
    n = int(np.prod([len(a) for a in axes]))
    rows = len(points)
    matrix = sp.csr_matrix((rows, n))
    for i, w in corners(axes, points):
        matrix = matrix + sp.csr_matrix((w, (np.arange(rows), i)), shape=(rows, n))
    normal = (matrix.T @ sp.diags(weights) @ matrix) + ridge * sp.identity(n)
    for j, a in enumerate(axes):
        if len(a) < 2:
            continue
        first = sp.diags([-1, 1], [0, 1], shape=(len(a) - 1, len(a)))
        gap = np.diff(a)
        d = sp.diags(1 / gap) @ first
        penalty = 0.05 * d.T @ sp.diags(gap) @ d
        if len(a) > 2:
            mid = (gap[:-1] + gap[1:]) / 2
            second = sp.diags(1 / mid) @ sp.diags([-1, 1], [0, 1], shape=(len(a) - 2, len(a) - 1)) @ d
            penalty = penalty + second.T @ sp.diags(mid) @ second
        parts = [sp.identity(len(b)) for b in axes]
        parts[j] = penalty
        full = parts[0]
        for part in parts[1:]:
            full = sp.kron(full, part)
        normal = normal + stiff[j] * full
    target = matrix.T @ (weights * values)
    found, _ = spla.cg(normal.tocsr(), target, tol=1e-5, maxiter=400)
    return found.reshape([len(a) for a in axes])


def fill_holes(values):
    """Nodes without a value get the mean of their neighbours, round by round."""
    values = values.copy()
    while np.isnan(values).any():
        total, count = np.zeros_like(values), np.zeros_like(values)
        for j in range(values.ndim):
            for step in (-1, 1):
                other = np.roll(values, step, axis=j)
                edge = [slice(None)] * values.ndim
                edge[j] = 0 if step == 1 else -1
                other[tuple(edge)] = np.nan
                total += np.nan_to_num(other)
                count += ~np.isnan(other)
        empty = np.isnan(values) & (count > 0)
        if not empty.any():
            return np.nan_to_num(values)
        values[empty] = total[empty] / count[empty]
    return values


def errors(miss):
    """bias, median and 90th percentile of |log error|"""
    miss = miss[np.isfinite(miss)]
    if len(miss) == 0:
        return "none"
    return "%5d rows  bias %+5.1f %%  median %4.1f %%  p90 %5.1f %%" % (
        len(miss), 100 * np.median(miss), 100 * np.median(abs(miss)), 100 * np.percentile(abs(miss), 90))
