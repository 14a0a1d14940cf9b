# SPDX-License-Identifier: Apache-2.0
"""Memory-bound kernels: our rows, each with its class, sizes and bytes.

A row is a dict: group, variant, type, m, n (rows and width, or elements and 1), bytes, elements, warm, cold, family,
step; for passes that compute an index per element also dims, turned and cast (layout_of)."""

import numpy as np

import atlas_rows

ROWS, BYTES = 8, 9
SIZE = {"bf16": 2, "fp16": 2, "fp32": 4, "tf32": 4, "int8": 1, "BFloat16": 2, "float": 4, "long int": 8, "int": 4, "bool": 1,
        "unsigned char": 1, "Half": 2, "double": 8}
TYPE = {"BFloat16": "bf16", "float": "fp32", "Half": "fp16"}

# Rows and a width: name -> number, operands of m x n read and written.
BY_ROWS = {"rms": (0, 2), "rms backward": (1, 3), "layer": (2, 2), "layer backward": (3, 3), "softmax": (4, 2), "softmax backward": (5, 3),
           "cross entropy": (6, 2), "cross entropy backward": (7, 2), "log softmax": (8, 2), "log softmax backward": (9, 3),
           "sum of rows": (10, 1), "sum of columns": (11, 1), "embedding": (12, 2), "embedding backward": (13, 1), "gather": (14, 2),
           "gather backward": (15, 3), "top k": (16, 1), "channels": (17, 2), "channels backward": (18, 3), "scan": (19, 2), "scan columns": (20, 2), "scatter": (21, 2), "softmax odd": (36, 2), "softmax backward odd": (37, 3), "cross entropy odd": (38, 2),
           "cross entropy backward odd": (39, 2), "log softmax odd": (40, 2), "log softmax backward odd": (41, 3)}
# Bytes alone.
BY_BYTES = {"elementwise": 0, "elementwise strided": 1, "copy": 2, "copy strided": 3, "fill": 4, "dropout": 5, "dropout backward": 6,
            "gelu": 7, "gelu backward": 8, "silu": 9, "silu backward": 10, "relu": 11, "relu backward": 12, "gated": 13,
            "gated backward": 14, "sum of all": 15, "rope": 16, "gated strided": 17, "sort": 18, "h2d": 20, "d2h": 21, "joined": 22, "joined strided": 23, "pool": 27, "pool backward": 28, "depthwise": 29, "depthwise backward": 30,
            "adamw fused": 24, "adamw foreach": 25,
            "clip": 26}

ISOLATED_ROWS = {"rmsnorm_fwd": "rms", "rmsnorm_bwd": "rms backward", "layernorm_fwd": "layer", "layernorm_bwd": "layer backward",
                 "softmax_fwd": "softmax", "softmax_bwd": "softmax backward", "sum_rows": "sum of columns", "sum_columns": "sum of rows",
                 "index_select": "gather", "index_add": "gather backward", "topk8": "top k"}
# reads and writes of each element
ISOLATED_BYTES = {"add": ("elementwise", 3), "add_": ("elementwise", 3), "neg": ("elementwise", 2), "exp": ("elementwise", 2),
                  "sqrt": ("elementwise", 2), "addcmul": ("elementwise", 4), "relu": ("relu", 2), "clone": ("copy", 2), "zero_": ("fill", 1),
                  "fill_": ("fill", 1), "gelu": ("gelu", 2), "gelu_bwd": ("gelu backward", 3), "silu": ("silu", 2), "silu_mul": ("gated", 3),
                  "sum_all": ("sum of all", 1), "sort": ("sort", 2)}


def by_rows(name, kind, m, n, warm, cold, family, step, extra=0.0, words=0):
    if n * SIZE[kind] % 16 and name + " odd" in BY_ROWS:
        name += " odd"  # rows do not start at multiples of 16 bytes
    number, operands = BY_ROWS[name]
    return {"group": ROWS, "variant": number, "name": name, "type": kind, "m": float(m), "n": float(n), "bytes": m * n * SIZE[kind] * operands + extra,
            "elements": float(m * n), "words": float(words), "warm": warm, "cold": cold, "family": family, "step": step}


def embedding(kind, m, n, words, *rest):
    """Rows of words that are drawn more than once are read once."""
    new = words * -np.expm1(-m / words) if words else m
    return by_rows("embedding", kind, m, n, *rest, extra=(new - m) * n * SIZE[kind])


def by_bytes(name, kind, elements, total, warm, cold, family, step, n=1.0, layout=(1, False, False)):
    return {"group": BYTES, "variant": BY_BYTES[name], "name": name, "type": kind, "m": float(elements), "n": float(n), "bytes": float(total),
            "elements": float(elements), "warm": warm, "cold": cold, "family": family, "step": step,
            **dict(zip(("dims", "turned", "cast"), map(float, layout)))}


def isolated():
    out = []
    for r in atlas_rows.kernels():
        op, kind, rest = r["op"], r["type"], (r["warm"], r["cold"], r["family"], False)
        size = SIZE.get(kind, 2)
        if op in ISOLATED_ROWS:
            out.append(by_rows(ISOLATED_ROWS[op], kind, r["_t"], r["_h"], *rest))
        elif op in ISOLATED_BYTES:
            name, operands = ISOLATED_BYTES[op]
            if op == "addcmul" and not r["is_more"]:
                operands = 3  # of which two are one tensor
            out.append(by_bytes(name, kind, r["_n"], r["_n"] * size * operands, *rest))
        elif op in ("cross_entropy_fwd", "cross_entropy_bwd"):
            out.append(by_rows("cross entropy" + (" backward" if op.endswith("bwd") else ""), kind, r["_t"], r["_v"], *rest))
        elif op == "embedding_fwd":  # no step finds its table in the cache, as a replayed graph does
            out.append(embedding(kind, r["_t"], r["_h"], r["_v"], r["cold"], *rest[1:]))
        elif op == "embedding_bwd":
            out.append(by_rows("embedding backward", kind, r["_t"], r["_h"], *rest, extra=r["_v"] * r["_h"] * size, words=r["_v"]))
        elif op in ("batchnorm_fwd", "batchnorm_bwd"):
            out.append(by_rows("channels" + (" backward" if op.endswith("bwd") else ""), kind, r["_b"] * r["_hw"] ** 2, r["_c"], *rest))
        elif op == "max_pool":
            n = r["_b"] * r["_c"] * r["_hw"] ** 2
            out.append(by_bytes("pool", kind, n, n * size + n / 4 * (size + 8), *rest))
        elif op == "conv_depthwise7":
            n = r["_b"] * r["_c"] * r["_hw"] ** 2
            out.append(by_bytes("depthwise", kind, n * 49, 2 * n * size + r["_c"] * 49 * size, *rest))
        elif op in ("cat_first", "cat_last"):
            n = r["_t"] * r["_h"] * 2
            out.append(by_bytes("joined", kind, n, 2 * n * size, *rest))
        elif op == "index_copy":
            out.append(by_rows("scatter", kind, r["_t"], r["_h"], *rest))
        elif op == "cumsum":
            out.append(by_rows("scan", kind, 1, r["_n"], *rest))
        elif op in ("transpose", "permute", "masked_fill", "slice_copy"):
            n = r["_t"] * r["_h"] if "_t" in r else r["_b"] * r["_s"] * r["_h"] * r["_d"]
            if op == "permute":
                out.append(by_bytes("copy strided", kind, n, n * size * 2, *rest, layout=(4, False, False)))
        elif op in ("swiglu_fwd", "swiglu_bwd"):
            back = op.endswith("bwd")
            n = r["_t"] * r["_h"]
            out.append(by_bytes("gated backward" if back else "gated strided", kind, n, n * size * (5 if back else 3), *rest))
        elif op == "dropout":
            out.append(by_bytes("dropout", kind, r["_n"], r["_n"] * (2 * size + 1), *rest))
        elif op == "to_fp32":
            out.append(by_bytes("copy strided", "fp32", r["_n"], r["_n"] * 6, *rest, layout=(1, False, True)))
        elif op == "rope":
            n = r["_b"] * r["_s"] * r["_h"] * r["_d"]
            out.append(by_bytes("rope", kind, n, n * 2 * size, *rest))
        elif op in ("h2d_pinned", "d2h_pinned"):
            out.append(by_bytes(op[:3], "bf16", r["_n"], r["_n"], r["warm"] if np.isfinite(r["warm"]) else r["cold"], *rest[1:]))
        elif op == "d2d":
            out.append(by_bytes("copy", "bf16", r["_n"] / 2, r["_n"] * 2, *rest))
        elif op in ("adamw_fused", "adamw_foreach", "clip_grad_norm"):
            name = {"adamw_fused": "adamw fused", "adamw_foreach": "adamw foreach", "clip_grad_norm": "clip"}[op]
            out.append(by_bytes(name, kind, r["_n"], r["_n"] * size * (3 if name == "clip" else 7), r["cold"], r["cold"], "optimizer %d" % (r["_n"] // r["_parts"]),
                                False, n=r["_parts"]))
    return out


def order_of(shape, stride):
    """The order of elements: dense (in order), turned (dense in another order), broadcast, or sliced"""
    sides = [(s, x) for s, x in zip(shape, stride) if s != 1]
    if any(x == 0 for _, x in sides):
        return "broadcast"
    expected = 1
    for s, x in sorted(sides, key=lambda side: side[1]):
        if x != expected:
            return "sliced"
        expected = x * s
    steps = [x for _, x in sides]
    return "dense" if steps == sorted(steps, reverse=True) else "turned " + str(sorted(range(len(steps)), key=lambda i: -steps[i]))


def layout_of(tensors, in_place):
    """What determines the cost of an element whose address is computed for every operand: the dimensions left after
    merging those that are contiguous in all operands; whether the elements of an operand are apart along the first of
    them; whether types differ.  tensors: (shape, strides, type); in_place: the first is the result, else the result has
    the layout of the largest."""
    rank = max(len(s) for s, _, _ in tensors)
    padded = [([1] * (rank - len(s)) + list(s), [0] * (rank - len(s)) + list(x)) for s, x, _ in tensors]
    shape = [max(s[d] for s, _ in padded) for d in range(rank)]
    strides = [[0 if s[d] == 1 else x[d] for d in range(rank)] for s, x in padded]
    if not in_place:
        like = padded[max(range(len(padded)), key=lambda i: int(np.prod(padded[i][0])))][1]
        result, step = [0] * rank, 1
        for d in sorted(range(rank), key=lambda d: (like[d], -d)):
            result[d] = step
            step *= shape[d]
        strides.insert(0, result)
    left = []  # (strides behind the last element, strides)
    for d in sorted((d for d in range(rank) if shape[d] > 1), key=lambda d: [x[d] for x in strides]):
        own = [x[d] for x in strides]
        behind = [x * shape[d] for x in own]
        if left and left[-1][0] == own:
            left[-1][0] = behind
        else:
            left.append([behind, own])
    return max(1, len(left)), bool(left) and any(x > 1 for x in left[0][1]), len({t for _, _, t in tensors}) > 1


POINT = {"mul": "elementwise", "add": "elementwise", "sub": "elementwise", "div": "elementwise", "neg": "elementwise", "add_": "elementwise",
         "clamp_min_": "elementwise", "silu": "silu", "silu_backward": "silu backward", "gelu": "gelu", "gelu_backward": "gelu backward",
         "threshold_backward": "relu backward", "copy_": "copy"}
IN_PLACE = {"add_", "clamp_min_", "copy_"}


def weights_of_models():
    """family -> shapes of the parameters that its products and convolutions read"""
    out = {}
    for r in atlas_rows.operators():
        mine = out.setdefault(r["family"], set())
        if r["op"] in ("mm", "addmm"):
            first = 1 if r["op"] == "addmm" else 0
            shape, strides = r["shapes"][first + 1], r["strides"][first + 1]
            if strides[0] == 1:  # as a layer stores it, transposed
                mine.add((shape[1], shape[0]))
        elif r["op"] == "cudnn_convolution":
            mine.add(tuple(r["shapes"][1]))
        elif r["op"] == "convolution_backward":
            mine.add(tuple(r["shapes"][2]))
    return out


def is_cast_of_weights(r, parameters):
    """Parameters have left the cache by the time a step casts them to 16 bits, activations and gradients have not."""
    shape = tuple(r["shapes"][0])
    return r["op"] == "copy_" and r["types"][:2] == ["BFloat16", "float"] and (len(shape) == 1 or shape in parameters[r["family"]])


def in_steps():
    out, parameters = [], weights_of_models()
    for r in atlas_rows.operators():
        op, rest = r["op"], (r["warm"], np.nan, r["family"], True)
        tensors = [(s, x, t) for s, x, t in zip(r["shapes"], r["strides"], r["types"]) if s and isinstance(s[0], int) and t in SIZE]
        shape = r["shapes"][0] if r["shapes"] and r["shapes"][0] and isinstance(r["shapes"][0][0], int) else None
        kind = TYPE.get(r["types"][0]) if r["types"] else None
        if op == "_fused_adamw_":
            amp = "amp" in r["family"]
            name = "fp32" if amp else "bf16"
            out.append(by_bytes("adamw fused", name, shape[0], shape[0] * SIZE[name] * 7, *rest, n=150))
        if op == "cat" and r["shapes"][0] and r["shapes"][0][0]:
            parts = [s for s in r["shapes"][0] if s]
            bytes_in = sum(int(np.prod(s)) for s in parts) * 2
            loose = any(order_of(s, x) != "dense" for s, x in zip(r["shapes"][0], r["strides"][0]) if s)
            out.append(by_bytes("joined strided" if loose else "joined", "bf16", bytes_in / 2, 2 * bytes_in, *rest))
            continue
        if op == "cumsum":
            if len(shape) == 2 and r["arguments"][1:2] in ([], ["0"]):  # down the columns
                m, n = shape
                out.append(by_rows("scan columns", "fp32", n, m, *rest))
            continue
        if not shape or not kind:
            continue
        count = int(np.prod(shape))
        if op == "native_layer_norm":
            out.append(by_rows("layer", kind, count // shape[-1], shape[-1], *rest))
        elif op == "native_layer_norm_backward":
            out.append(by_rows("layer backward", kind, count // shape[-1], shape[-1], *rest))
        elif op == "_fused_rms_norm":
            out.append(by_rows("rms", kind, count // shape[-1], shape[-1], *rest))
        elif op == "_fused_rms_norm_backward":
            out.append(by_rows("rms backward", kind, count // shape[-1], shape[-1], *rest))
        elif op in ("_log_softmax", "_log_softmax_backward_data"):
            out.append(by_rows("log softmax" + (" backward" if "back" in op else ""), kind, count // shape[-1], shape[-1], *rest))
        elif op in ("_softmax", "_softmax_backward_data"):
            out.append(by_rows("softmax" + (" backward" if "back" in op else ""), kind, count // shape[-1], shape[-1], *rest))
        elif op == "native_batch_norm":
            out.append(by_rows("channels", kind, count // shape[1], shape[1], *rest))
        elif op == "native_batch_norm_backward":
            out.append(by_rows("channels backward", kind, count // shape[1], shape[1], *rest))
        elif op == "gather" and len(r["shapes"][2]) == 2:
            m, n = r["shapes"][2]
            out.append(embedding(kind, m, n, r["shapes"][0][0], *rest))
        elif op == "embedding_dense_backward" and len(shape) >= 2:
            words = int(r["arguments"][2]) if len(r["arguments"]) > 2 and r["arguments"][2] else 0
            n = shape[-1]
            out.append(by_rows("embedding backward", kind, count // n, n, *rest, extra=words * n * SIZE[kind], words=words))
        elif op == "index_add_":
            m, n = r["shapes"][3][0], int(np.prod(r["shapes"][3][1:]))
            out.append(by_rows("gather backward", kind, m, n, *rest))
        elif op == "sum" and order_of(shape, r["strides"][0]) == "dense" and len(r["arguments"]) > 1:
            over = [int(x) for x in r["arguments"][1].strip("[]").split(",") if x.strip()]
            over = sorted(x % len(shape) for x in over)
            # They take as long as those timed alone from memory (of columns 0.6 % less, median of 264; of rows 3 % more, of 9), not as
            # from the cache (23 and 88 % more).
            rest = (np.nan, r["warm"], *rest[2:])
            m = int(np.prod([shape[i] for i in over])) if over else 1
            if over == list(range(len(over))) and len(over) < len(shape):
                out.append(by_rows("sum of columns", kind, m, count // m, *rest))
            elif over == list(range(len(shape) - len(over), len(shape))) and len(over) < len(shape):
                out.append(by_rows("sum of rows", kind, count // m, m, *rest))
        elif op == "index_copy":
            m, n = r["shapes"][3][0], int(np.prod(r["shapes"][3][1:]))
            out.append(by_rows("scatter", kind, m, n, *rest))
        elif op == "max_pool2d_with_indices":
            out.append(by_bytes("pool", kind, count, count * SIZE[kind] + count / 4 * (SIZE[kind] + 8), *rest))
        elif op == "max_pool2d_with_indices_backward":
            whole = int(np.prod(r["shapes"][1]))
            out.append(by_bytes("pool backward", kind, whole, count * (SIZE[kind] + 8) + whole * SIZE[kind], *rest))
        elif op in ("cudnn_convolution", "convolution_backward"):
            back = op != "cudnn_convolution"
            x, w = (r["shapes"][1], r["shapes"][2]) if back else (r["shapes"][0], r["shapes"][1])
            if w[1] == 1 and x[1] > 1:
                stride = 1
                n = int(np.prod(x)) / stride**2
                weights = w[0] * w[2] * w[3] * SIZE[kind]
                inner = int(np.prod(x)) * SIZE[kind] + weights
                out.append(by_bytes("depthwise" + (" backward" if back else ""), kind, n * w[2] * w[3] * (2 if back else 1),
                                    2 * inner + 2 * n * SIZE[kind] if back else inner + n * SIZE[kind], *rest))
        elif op == "fill_":
            out.append(by_bytes("fill", kind, count, count * SIZE[kind], *rest))
        elif op == "native_dropout":
            out.append(by_bytes("dropout", kind, count, count * (2 * SIZE[kind] + 1), *rest))
        elif op == "native_dropout_backward":
            out.append(by_bytes("dropout backward", kind, count, count * (2 * SIZE[kind] + 1), *rest))
        elif op in POINT and tensors:
            elements = max(int(np.prod(s)) for s, _, _ in tensors)
            orders = {order_of(s, x) for s, x, _ in tensors}
            types = {t for _, _, t in tensors}
            total = sum(int(np.prod([a for a, b in zip(s, x) if b])) * SIZE[t] for s, x, t in tensors)
            if op == "copy_" or op == "clamp_min_":
                total += count * SIZE[r["types"][0]] if op == "clamp_min_" else 0
            else:
                total += elements * SIZE[r["types"][0]]
            same = len({int(np.prod(s)) for s, _, _ in tensors if int(np.prod(s)) > 1}) == 1
            whole = same and len(orders) == 1 and "sliced" not in orders and "broadcast" not in orders
            up = op == "copy_" and r["types"][0] == "float" and "BFloat16" in types
            mixed = len(types) > 1 and op != "copy_"
            name = POINT[op]
            if not whole or up or mixed:
                name = "copy strided" if name == "copy" else "elementwise strided"
            if name == "copy" and is_cast_of_weights(r, parameters):
                rest = (np.nan, r["warm"], *rest[2:])
            out.append(by_bytes(name, kind if name != "copy" else "bf16", elements, total, *rest, layout=layout_of(tensors, op in IN_PLACE)))
    return out


def gated_in_steps():
    """SiLU of one half of a product's columns, times the other half: two operators that always occur together in a
    gated layer."""
    out, halves = [], {}
    for r in atlas_rows.operators():
        if r["op"] not in ("silu", "mul") or r["types"][0] != "BFloat16":
            continue
        sliced = any(s and order_of(s, x) == "sliced" for s, x in zip(r["shapes"], r["strides"]))
        if sliced and all(s == r["shapes"][0] for s in r["shapes"] if s):
            halves[r["family"], r["op"], str(r["shapes"][0])] = r
    for (family, op, shape), silu in halves.items():
        other = halves.get((family, "mul", shape))
        if op == "silu" and other:
            n = int(np.prod(silu["shapes"][0]))
            out.append(by_bytes("gated strided", "bf16", n, n * 2 * 3, silu["warm"] + other["warm"], np.nan, family, True))
    return out


def rows():
    return isolated() + in_steps() + gated_in_steps()
