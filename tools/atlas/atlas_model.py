# SPDX-License-Identifier: Apache-2.0
"""The form of kernel times: the base of each kind, as in src/models/compute/atlas/atlas_base.c, and smooth grids.

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
    """A smooth maximum; a fourth root, so that C needs only square roots."""
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


def through_cache(total, rate, cache, part, more):
    """The time of bytes of which the cache holds as many as fit, and memory the rest."""
    share = total / (0.7 * cache)
    return total / (rate * (part + more / (1 + share * share)))


# Tiles from the names of cuBLAS's and cuDNN's kernels on Hopper; the time of a tile follows from three constants.
OWN_TILES = ((256, 128), (128, 256), (320, 128), (128, 320), (192, 192), (192, 128), (128, 192), (128, 128), (128, 64), (64, 128), (64, 64),
             (64, 32), (32, 64), (64, 16), (16, 64), (64, 8), (8, 64))
CONV_TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (256, 64), (64, 64), (64, 32), (32, 64))


def tiles_us(batch, m, n, k, left, right, units, peak, rate, tiles, p, has_waves=True):
    """p: us per tile, us to split, ns per 64 of k, arithmetic efficiency, GB/s at which a unit loads factors.
    Arithmetic covers at least 64 rows or columns.  has_waves: the last wave takes as long as a full one."""
    best = np.full(np.shape(m), 1e30)
    for tm, tn in tiles:
        count = batch * np.ceil(m / tm) * np.ceil(n / tn)
        flops = 2.0 * min(tm, tn) * max(tm, tn, 64)
        work = soft_max(flops / (peak / units * p[3]), (left * tm + right * tn) / (p[4] * 1e3)) + p[2] * 1e-3 / 64
        waves = np.ceil(count / units) if has_waves else np.maximum(count / units, 1)
        best = np.minimum(best, waves * (work * k + p[0]))
        parts = np.minimum(np.floor(units / count), np.floor(k / 256))
        safe = np.maximum(parts, 2)
        split = np.ceil(count * safe / units) * (work * k / safe + p[0]) + p[1] + 4 * batch * m * n * safe / rate
        best = np.where(parts >= 2, np.minimum(best, split), best)
    return best


OWN_START = [1.5, 0.75, 1.0, 0.5, 1.0, 2.0, 0.5, 0.85, 150.0]
OWN_LOW = [0.3, 0.2, 0.05, 0.01, 0.05, 0.1, 0.01, 0.02, 0.5]
OWN_HIGH = [12, 1.5, 12, 3.0, 40.0, 60.0, 60.0, 1.25, 1e4]


def own_gemm_base(batch, m, n, k, left, right, out, units, peak, rate, cache, p):
    """p: launch us, fraction of the memory rate, its latency us, additional rate while the cache holds all, then as in
    tiles_us."""
    total = batch * (left * m * k + right * n * k + out * m * n)
    memory = through_cache(total, rate, cache, p[1], p[3]) + p[2]
    return p[0] + soft_max(tiles_us(batch, m, n, k, left, right, units, peak, rate, OWN_TILES, p[4:]), memory)


CONV_START = [3.0, 0.75, 1.0, 0.3] + [1.0, 2.0, 0.5, 0.8, 150.0] + [1.2, 1.2, 1.2]
CONV_LOW = [0.5, 0.1, 0.05, 0.01] + [0.05, 0.1, 0.01, 0.05, 5.0] + [0.5, 0.3, 0.3]
CONV_HIGH = [30, 1.5, 12, 3.0] + [40.0, 60.0, 60.0, 1.25, 1e4] + [10.0, 10.0, 20.0]


def conv_base(batch, inner, outer, side, window, stride, groups, backward, units, peak, rate, cache, p):
    """Products of pixels by the channels of a window, in which an image is read once, not once per position of the
    window; backward one for the weights and one for the input, with as much work as forward for any stride.  p: as in
    own_gemm_base, then the factors on arithmetic time with a window, with a stride, and with a stride but no window."""
    inner, outer, places = inner / groups, outer / groups, window**2
    pixels, whole = batch * np.ceil(side / stride) ** 2, batch * side**2
    times = np.where(window > 1, p[9], 1) * np.where(stride > 1, p[10], 1) * np.where((stride > 1) & (window == 1), p[11], 1)
    read, written, weights = 2 * groups * inner * whole, 2 * groups * outer * pixels, 2 * groups * inner * outer * places

    def product(m, n, k, total):
        work = tiles_us(groups, m, n, k, 2, 2, units, peak, rate, CONV_TILES, p[4:], has_waves=False)
        return p[0] + soft_max(work * times, through_cache(total, rate, cache, p[1], p[3]) + p[2])

    seen = np.where((window == 1) & (stride > 1), read / stride**2, read)
    forward = product(pixels, outer, inner * places, seen + written + weights)
    everything = read + written + weights
    of_weights = product(outer, inner * places, pixels, everything)
    of_input = np.where(inner % 8 == 0, product(whole, inner, outer * places / stride**2, everything), 0)
    return np.where(backward > 0, of_weights + of_input, forward)


def fit_constants(function, start, low, high, log_time, weight=None, most=4000, seed=1):
    """function(p, rows) -> us of the selected rows; returns the constants."""
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
    """p: launch us, fraction of the memory rate, additional rate while the cache holds all, us per million elements, ns
    per element of a row that one block processes.  total, cache: bytes."""
    memory = through_cache(total, rate, cache, p[1], p[2])
    walk = np.ceil(rows / (4 * units)) * width * p[4] * 1e-3
    return p[0] + soft_max(soft_max(memory, elements * p[3] * 1e-6), walk)


PASS_START = [2.0, 0.75, 0.5, 1.0, 0.2, 0.5, 0.5]
PASS_LOW = [0.8, 0.2, 0.02, 0.002, 0.001, 0.001, 0.001]
PASS_HIGH = [60, 1.0, 3.0, 2000, 100, 100, 100]


def pass_base(total, elements, dims, turned, cast, rate, cache, p):
    """p: as in memory_base, but us per million elements for each dimension beyond the first, for operands with strided
    elements, and for differing types."""
    each = p[3] + p[4] * (dims - 1) + p[5] * turned + p[6] * cast
    return p[0] + soft_max(through_cache(total, rate, cache, p[1], p[2]), elements * each * 1e-6)


SUM_START = [2.0, 0.75, 0.5, 0.2, 1.0, 0.3, 1.5]
SUM_LOW = [0.8, 0.1, 0.02, 0.01, 0.01, 0.02, 0.5]
SUM_HIGH = [20, 1.0, 3.0, 5.0, 20.0, 5.0, 5.0]


def power_below(x):
    """The largest power of two that is not above x."""
    return 2.0 ** np.floor(np.log2(x))


def sum_base(total, rows, width, units, rate, cache, p):
    """Sums of columns, as PyTorch cuts them: a thread has 4 neighbouring columns where their number allows, a block of 512 / 4 threads a
    patch of columns by rows, of which each thread adds 4 at a time.  From 1,024 rows on several blocks share a patch and the last of them
    adds their sums up one after the other.  p: launch us, fraction of the memory rate, additional rate while the cache holds all, us for 4
    rows of a thread, us to share, us for each sum of a block, factor on both where patches are not full."""
    vector = np.where(width % 4 == 0, 4, np.where(width % 2 == 0, 2, 1))
    wide, most = width / vector, 512 / vector
    columns = np.minimum(np.minimum(power_below(wide), most), 32)
    high = np.minimum(np.minimum(power_below(rows), most), most / columns)
    columns = np.minimum(np.minimum(power_below(wide), most), most / high)
    by_rows = rows >= np.minimum(16 * high, 256)
    each = np.where(by_rows, np.ceil(rows / high), rows)
    patches = np.ceil(wide / (columns * np.where(by_rows, 1, high)))
    shares = np.maximum(np.minimum(np.ceil(units * 2048 / (columns * high) / patches), np.ceil(each / 16)), np.ceil(each / 256))
    shares = np.where(by_rows & (each >= 256), shares, 1)
    uneven = np.where(wide % columns > 0, p[6], 1)
    steps = np.ceil(each / shares / 4)
    work = soft_max(through_cache(total, rate, cache, p[1], p[2]), steps * p[3] * uneven)
    return p[0] + work + np.where(shares > 1, p[4] + np.ceil(shares / high) * p[5] * uneven, 0)


ROW_SUM_START = [2.0, 0.75, 0.5, 0.1, 0.5]
ROW_SUM_LOW = [0.8, 0.1, 0.02, 0.005, 0.01]
ROW_SUM_HIGH = [20, 1.0, 3.0, 2.0, 5.0]


def row_sum_base(total, rows, width, units, rate, cache, p):
    """Sums of rows, as PyTorch cuts them: blocks of 512 threads, 4 neighbours per thread and step; a warp per row, or, from 8,192 elements
    on, a block.  p: launch us, fraction of the memory rate, additional rate while the cache holds all, us per step, us per block."""
    alone = width >= 8192
    steps = np.ceil(width / np.where(alone, 2048, 128))
    waves = soft_max(1, np.where(alone, rows, rows / 16) / (4 * units))
    return p[0] + soft_max(through_cache(total, rate, cache, p[1], p[2]), waves * (p[4] + steps * p[3]))


SCATTER_START = [4.0, 0.75, 0.5, 15.0, 10.0, 20.0, 1.0, 0.5, 80.0, 2.0, 10.0, 5.0]
SCATTER_LOW = [0.8, 0.2, 0.02, 1.0, 0.1, 0.1, 0.01, 0.001, 20.0, 0.1, 0.1, 0.01]
SCATTER_HIGH = [20, 1.0, 3.0, 100.0, 100.0, 200.0, 20.0, 10.0, 200.0, 30.0, 100.0, 100.0]


def scatter_base(rows, width, words, filled, size, units, rate, cache, p):
    """Adds rows to those of a table of words, which is filled with zeros before.  Up to 3,072 rows, a block has 32 columns and goes along
    all rows, 32 at a time; more rows are sorted first and go through some thirty kernels.  p: launch us, fraction of the memory rate for
    zeros, its additional rate while the cache holds the table; then for few rows ns per row, more for a word that is new, more for it if
    it is in memory, for each equal row of 32, and the factor for blocks that share a multiprocessor; for many us, us per million elements,
    more for new words, and for these in memory."""
    table = words * width * size
    words = np.where(words > 0, words, rows)
    new = words * -np.expm1(-rows / words)
    beyond = (table / (0.7 * cache)) ** 2
    beyond = beyond / (1 + beyond)
    equal = np.maximum(np.minimum(32, 32 / words) - 1, 0)
    row = p[3] + (p[4] + p[5] * beyond) * new / rows + p[6] * equal
    few = rows * row * 1e-3 * (1 + p[7] * width / (32 * units))
    many = p[8] + 1e-6 * width * (rows * p[9] + new * (p[10] + p[11] * beyond))
    return p[0] + np.where(rows <= 3072, few, many) + filled * through_cache(table, rate, cache, p[1], p[2])


SOFTMAX_START = [2.0, 0.75, 0.5, 0.1, 3.0, 0.5, 0.3, 1.25, 0.5]
SOFTMAX_LOW = [0.8, 0.03, 0.02, 0.001, 0.1, 0.01, 0.01, 1.0, 0.2]
SOFTMAX_HIGH = [60, 1.0, 3.0, 10, 50, 10, 10, 1.6, 1.0]


def softmax_base(total, rows, width, units, rate, cache, p):
    """Rows of at most 2,048 are held by a warp, 16 warps per multiprocessor, fewer beyond 1,024; rows of at most 9,216 by a block of 1,024
    threads; longer ones stream through shared memory.  p: launch us, fraction of the memory rate, its additional rate while the cache
    holds all; us per row of a warp, ns per element of it; us per block, us per 1,024 elements of it; the factor beyond 1,024; fraction of
    the memory rate of long rows."""
    memory = through_cache(total, rate, cache, p[1], p[2])
    row = p[3] + p[4] * 1e-3 * width
    warps = row * soft_max(1, rows / (16 * units) * np.where(width > 1024, p[7], 1))
    blocks = soft_max(1, rows / units) * (p[5] + p[6] * width / 1024)
    busy = np.where(width <= 2048, warps, np.where(width <= 9216, blocks, total / (rate * p[8])))
    return p[0] + soft_max(memory, busy)


ATTENTION_START = [4.0, 0.7, 1.0, 0.5, 0.6]
ATTENTION_LOW = [0.5, 0.05, 0.02, 0.01, 0.03]
ATTENTION_HIGH = [60, 1.5, 60, 10, 1.2]


def attention_base(batch, heads, group, head, q, kv, causal, backward, units, peak, rate, p):
    """Blocks of 128 queries.  p: launch us, fraction of the memory rate, us per block, fraction of a block for the last
    wave, efficiency."""
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


OWN_ATTENTION_START = [4.0, 0.7, 1.0, 0.5, 0.6, 5.0]
OWN_ATTENTION_LOW = [0.5, 0.05, 0.02, 0.01, 0.03, 0.01]
OWN_ATTENTION_HIGH = [60, 1.5, 60, 10, 1.5, 2000]


def own_attention_base(batch, heads, group, head, q, kv, causal, backward, units, peak, rate, p):
    """Blocks of 128 queries (backward 64) iterate over tiles of 128 keys; heads are padded to multiples of 64.  p:
    launch us, fraction of the memory rate, us per block, fraction of a block for the last wave, efficiency, ns per
    tile."""
    times, side = np.where(backward > 0, 2.5, 1.0), np.where(backward > 0, 64.0, 128.0)
    rows, columns = np.ceil(q / side), np.ceil(kv / 128)
    before = np.maximum(kv - q, 0) / 128
    tiles = np.where(causal > 0, np.minimum(rows * before + side / 128 * rows * (rows + 1) / 2, rows * columns), rows * columns)
    tile = 4 * side * 128 * 64 * np.ceil(head / 64) * times / (peak / units * p[4]) + p[5] * 1e-3
    moved = 2 * batch * head * (q * heads * np.where(backward > 0, 4, 2) + 2 * kv * heads / group * np.where(backward > 0, 2, 1))
    mean, longest = tile * tiles / rows + p[2], tile * columns + p[2]
    compute = soft_max(mean * batch * heads * rows / units, longest) + p[3] * mean
    return p[0] + soft_max(compute, moved / (rate * p[1]))


DECODE_START = [5.0, 0.7, 0.2, 1.0, 256.0]
DECODE_LOW = [0.5, 0.1, 0.01, 0.01, 32.0]
DECODE_HIGH = [60, 1.5, 1.5, 30, 4096.0]


def decode_base(batch, heads, group, head, kv, units, peak, rate, p):
    """p: launch us, fraction of the memory rate, efficiency, us if keys are split, minimum number of keys per block."""
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
    """A gated layer.  p: launch us, fraction of the memory rate for weights, for activations, efficiencies of tiles."""
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
    """Blocks of 65,536 parameters, at most 320 per launch.  p: launch us, fraction of the memory rate, us per block,
    tensors per launch."""
    each = parameters / tensors
    blocks = tensors * np.ceil(each / 65536)
    launches = np.maximum(np.ceil(blocks / 320), tensors / p[3])
    block = p[2] * np.minimum(each, 65536) / 65536
    return p[0] + launches * soft_max(block, total / launches / (rate * p[1]))


# ---- grids ----


def place(axis, x):
    """Cell and fraction on an axis of ascending values; clamped at the ends."""
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
    """Node values whose multilinear interpolation approximates the values, with penalties on second differences along
    each axis (stiff, one number per axis) and on magnitude (ridge)."""
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
    """Nodes without a value get the mean of their neighbours, iteratively."""
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
