# SPDX-License-Identifier: Apache-2.0
"""Readers of the compact tables of truth/kernels."""

import csv
import fnmatch
import json
import pathlib
import subprocess

import numpy as np

# The gap between two kernels of a replayed graph: times of kernels in graphs include it, those in profiled steps do
# not.  (Steps as graphs minus the sum of their kernels, per kernel: 0.27 to 0.49 us.)
GAP_US = 0.42
# Operators of these models are not fitted because the atlas has no class for them: grouped convolutions, depthwise ones with strides,
# concatenations of many parts, pools with other windows.
NOT_FITTED = ["efficientnet_*", "mobilenet_*", "densenet*", "vgg*", "resnext*", "regnet*"]
LEFT_OUT = []  # models whose steps are not used, to see how well the rest predicts them
# A replayed graph of 20 copies begins with 9 us that h200_families has and h200_kernels has not: median over 147 shapes below 12 us in both.
GRAPH_START_US = 0.45
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "truth" / "kernels"


def read(name):
    path = FOLDER / (name + ".csv.zst")
    if not path.exists():
        return []
    text = subprocess.run(["zstd", "-dc", str(path)], capture_output=True, check=True).stdout.decode()
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


# The same die with more power: a product cannot take longer there.  The public rows of the GB200 in bf16 beyond 2^40
# FLOPs are 20 to 35 % slower than the B200's, those of all other types and of the GB300 (beside the B300) 1 to 20 %
# quicker.  Where one is slower by more than the scatter of both, the other's time is used.
SCATTER = 1.1
WITH_MORE_POWER = {"gb200": "b200", "gb300": "b300"}


def aic_gemm(chip):
    """type -> rows of m, n, k, us"""
    out, most = {}, {}
    for row in read("aic_gemm_" + WITH_MORE_POWER[chip]) if chip in WITH_MORE_POWER else []:
        for key, value in row.items():
            if key.startswith("m=") and value:
                most[row["type"], key, row["n"], row["k"]] = float(value)
    for row in read("aic_gemm_" + chip):
        rows = out.setdefault(row["type"], [])
        for key, value in row.items():
            if key.startswith("m=") and value:
                us, other = float(value), most.get((row["type"], key, row["n"], row["k"]), np.inf)
                rows.append((int(key[2:]), int(row["n"]), int(row["k"]), other if us > SCATTER * other else us))
    return {name: np.array(rows) for name, rows in out.items()}


def number(text):
    return float(text) if text else np.nan


def kernels():
    """Our isolated rows: dicts with op, type, family, sizes, warm and cold us."""
    out = []
    for row in read("h200_kernels") + read("h200_families"):
        start = 0 if "cold_us" in row else GRAPH_START_US
        sizes = {part.split("=")[0]: int(part.split("=")[1]) for part in row["dims"].split()}
        out.append({"op": row["op"], "type": row["type"], "family": row["family"], "step": False, **{"_" + key: value for key, value in sizes.items()},
                    "warm": number(row["graph_hot_us"]) - start, "cold": number(row["kernel_cold_us"]), "event": number(row.get("cold_us")),
                    "kernels": number(row["kernels"]), "is_more": "cold_us" not in row})
    return out


def reads_cold_weights(shapes, op):
    """The rule of llm_kernels.c: the weights of a product with few rows have left the cache by the time their layer
    runs again."""
    first = 1 if op == "addmm" else 0
    m, k, n = shapes[first][-2], shapes[first][-1], shapes[first + 1][-1]
    return n > 4 * m and n * k * 2 < 64 << 20


def operators():
    """Operators inside steps, passes and prompts: dicts with op, shapes, types, strides, us, model.  Operators whose
    weights or keys are not cached have a cold time, all others a warm one."""
    out = []
    known = read("h200_operators") + read("h200_passes") + read("h200_decode")
    for number_of, row in enumerate(known + read("h200_models")):
        if any(fnmatch.fnmatch(row["model"], pattern) for pattern in LEFT_OUT + NOT_FITTED):
            continue
        op, shapes = row["op"].replace("aten::", ""), json.loads(row["shapes"])
        if op == "native_batch_norm" and json.loads(row["arguments"] or "[]")[5:6] == ["False"]:
            continue  # no statistics of the batch
        us = float(row["us"]) + float(row.get("gap_us", GAP_US)) * max(1, int(row["kernels"]) // max(1, int(row["calls"])))
        serves = row.get("mode") in ("decode", "prefill")
        cold = serves and (op in ("mm", "addmm") and reads_cold_weights(shapes, op) or op == "_cudnn_attention_forward" and shapes[0][2] == 1)
        out.append({"op": op, "family": "step_" + row["model"], "step": True, "shapes": shapes,
                    "types": json.loads(row["types"]), "strides": json.loads(row["strides"]),
                    "arguments": json.loads(row["arguments"]) if row["arguments"] else [], "calls": int(row["calls"]),
                    "kernels": int(row["kernels"]), "warm": np.nan if cold else us, "cold": us if cold else np.nan, "is_more": number_of >= len(known)})
    return out


LAYOUTS = {"gemm": ("nt", ""), "gemm_nn": ("nn", ""), "gemm_tn": ("tn", ""), "linear_bias": ("nt", "bias"),
           "linear_gelu": ("nt", "act"), "linear_relu": ("nt", "act"), "bmm": ("nn", ""), "bmm_nt": ("nt", ""), "bmm_tn": ("tn", "")}


# Of the products of h200_families and h200_models only those in bf16 with unaligned rows, of models, are fitted.  The aligned ones are too
# many of one power state: those of h200_families take 3 to 5 % longer than the same shapes in h200_kernels, those of h200_models are
# profiled after a rest; old families left out come out no better with them (nt: 14.8 -> 15.4 % at the 90th percentile).  Drawn ones are
# thinner than those of any model.
def is_fitted(product):
    return not product["is_more"] or "drawn" not in product["family"] and product["type"] == "bf16" and alignment(product) < 8


OF_PRODUCTS = ("type", "warm", "cold", "family", "step", "is_more")


def products():
    """Products from both sources: batch, m, n, k, layout, form, type, warm, cold, family, step."""
    out = []
    for row in kernels():
        if row["op"] in LAYOUTS:
            layout, form = LAYOUTS[row["op"]]
            out.append({"batch": row.get("_b", 1), "m": row["_m"], "n": row["_n"], "k": row["_k"], "layout": layout, "form": form,
                        "batched": row["op"].startswith("bmm"), **{key: row[key] for key in OF_PRODUCTS}})
    for row in read("h200_products"):  # 20 copies in a graph, after an idle period
        if row["type"] != "fp8":
            continue
        out.append({"batch": 1, "m": int(row["m"]), "n": int(row["n"]), "k": int(row["k"]), "layout": "nt", "form": "", "batched": False,
                    "type": row["type"], "warm": float(row["burst_us"]), "cold": np.nan, "family": "products_" + row["n"], "step": False,
                    "is_more": False})
    for row in operators():
        if row["op"] not in ("mm", "addmm", "bmm") or row["types"][0] not in ("BFloat16", "float"):
            continue
        first = 1 if row["op"] == "addmm" else 0
        a, b = row["shapes"][first:first + 2]
        stored_a, stored_b = row["strides"][first:first + 2]
        turned_a = stored_a[-1] != 1 and a[-1] != 1
        turned_b = stored_b[-1] != 1 and b[-1] != 1
        if turned_a and turned_b:
            continue
        layout = "tn" if turned_a else "nt" if turned_b else "nn"
        out.append({"batch": a[0] if len(a) == 3 else 1, "m": a[-2], "n": b[-1], "k": a[-1], "layout": layout, "form": "bias" if first else "",
                    "batched": len(a) == 3, "type": "bf16" if row["types"][0] == "BFloat16" else "fp32",
                    **{key: row[key] for key in OF_PRODUCTS if key != "type"}})
    return [product for product in out if is_fitted(product)]


def alignment(row):
    """The largest power of two, at most 16, that divides the row length of every operand."""
    sides = (row["m"], row["n"]) if row["layout"] == "tn" else (row["k"], row["n"])
    return min(min(16, side & -side) for side in sides)
