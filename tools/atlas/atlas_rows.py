# SPDX-License-Identifier: Apache-2.0
"""Rows of truth/kernels, as kernels: readers of the compact tables."""

import csv
import fnmatch
import json
import pathlib
import subprocess

import numpy as np

# From the end of a kernel to the start of the next in a replayed graph: kernels of profiled steps do not have it,
# those timed in graphs do.  (Steps as graphs less the sum of their kernels, by kernel: 0.27 to 0.49 us.)
GAP_US = 0.42
LEFT_OUT = []  # models whose steps are not used: to see what the rest says of them
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "truth" / "kernels"


def read(name):
    path = FOLDER / (name + ".csv.zst")
    if not path.exists():
        return []
    text = subprocess.run(["zstd", "-dc", str(path)], capture_output=True, check=True).stdout.decode()
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def aic_gemm(chip):
    """type -> rows of m, n, k, us"""
    out = {}
    for row in read("aic_gemm_" + chip):
        rows = out.setdefault(row["type"], [])
        for key, value in row.items():
            if key.startswith("m=") and value:
                rows.append((int(key[2:]), int(row["n"]), int(row["k"]), float(value)))
    return {name: np.array(rows) for name, rows in out.items()}


def number(text):
    return float(text) if text else np.nan


def kernels():
    """Our isolated rows: dicts with op, type, family, sizes, warm and cold us."""
    out = []
    for row in read("h200_kernels"):
        sizes = {part.split("=")[0]: int(part.split("=")[1]) for part in row["dims"].split()}
        out.append({"op": row["op"], "type": row["type"], "family": row["family"], "step": False, **{"_" + key: value for key, value in sizes.items()},
                    "warm": number(row["graph_hot_us"]), "cold": number(row["kernel_cold_us"]), "event": number(row["cold_us"]),
                    "kernels": number(row["kernels"])})
    return out


def operators():
    """Operators inside training steps: dicts with op, shapes, types, strides, us, model."""
    out = []
    for row in read("h200_operators"):
        if any(fnmatch.fnmatch(row["model"], pattern) for pattern in LEFT_OUT):
            continue
        out.append({"op": row["op"].replace("aten::", ""), "family": "step_" + row["model"], "step": True, "shapes": json.loads(row["shapes"]),
                    "types": json.loads(row["types"]), "strides": json.loads(row["strides"]),
                    "arguments": json.loads(row["arguments"]) if row["arguments"] else [], "calls": int(row["calls"]),
                    "kernels": int(row["kernels"]), "warm": float(row["us"]) + GAP_US * max(1, int(row["kernels"]) // max(1, int(row["calls"]))), "cold": np.nan})
    return out


LAYOUTS = {"gemm": ("nt", ""), "gemm_nn": ("nn", ""), "gemm_tn": ("tn", ""), "linear_bias": ("nt", "bias"),
           "linear_gelu": ("nt", "act"), "linear_relu": ("nt", "act"), "bmm": ("nn", ""), "bmm_nt": ("nt", ""), "bmm_tn": ("tn", "")}


def products():
    """Products of both: batch, m, n, k, layout, form, type, warm, cold, family, step."""
    out = []
    for row in kernels():
        if row["op"] in LAYOUTS:
            layout, form = LAYOUTS[row["op"]]
            out.append({"batch": row.get("_b", 1), "m": row["_m"], "n": row["_n"], "k": row["_k"], "layout": layout, "form": form,
                        "batched": row["op"].startswith("bmm"), **{key: row[key] for key in ("type", "warm", "cold", "family", "step")}})
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
                    **{key: row[key] for key in ("warm", "cold", "family", "step")}})
    return out


def alignment(row):
    """Elements that every row of every operand is a multiple of, at most 16."""
    sides = (row["m"], row["n"]) if row["layout"] == "tn" else (row["k"], row["n"])
    return min(min(16, side & -side) for side in sides)
