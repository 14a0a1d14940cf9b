# SPDX-License-Identifier: Apache-2.0
"""Attention and experts: rows of truth/kernels with the sizes their bases need."""

import zlib

import numpy as np

import atlas_rows

HEADS = (64, 128, 192, 256)  # buckets of head sizes, the last for all above 192
BACKWARD, PAGED, COLD, MIXED = 16, 32, 64, 128  # added to the bucket


def bucket(head):
    for i, size in enumerate(HEADS):
        if head <= size:
            return i
    return len(HEADS)


def context(chip):
    """batch, heads, group, head, q, causal, backward, us, family of public rows"""
    out = []
    for r in atlas_rows.read("aic_context_attention_" + chip):
        heads, kv = int(r["num_heads"]), int(r["num_key_value_heads"]) or int(r["num_heads"])
        out.append((int(r["batch_size"]), heads, heads / kv, int(r["head_dim"]), int(r["isl"]), 1, float(r["us"]), heads * 1000 + kv))
    for r in atlas_rows.read("aic_encoder_attention_" + chip):
        out.append((int(r["batch_size"]), int(r["num_heads"]), 1, int(r["head_dim"]), int(r["isl"]), 0, float(r["us"]), -int(r["num_heads"])))
    return np.array(out, float)


def decode(chip):
    """batch, heads, group, head, kv, us, family"""
    out = []
    for r in atlas_rows.read("aic_generation_attention_" + chip):
        heads, kv = int(r["num_heads"]), int(r["num_key_value_heads"]) or int(r["num_heads"])
        out.append((int(r["batch_size"]), heads, heads / kv, int(r["head_dim"]), int(r["step"]) + 1, float(r["us"]), heads * 1000 + kv))
    return np.array(out, float)


def served(chip, mixed):
    """batch, heads, group, head, kv, us, family of decoding sequences: alone, or in one launch with a prompt, minus the
    time of the prompt alone.  In such a launch every head reads its own keys: the group is 1."""
    rows = [{"us": float(r["us"]), **{key: int(r[key]) for key in ("heads", "kv_heads", "prompt", "sequences", "kv")}, "model": r["model"]}
            for r in atlas_rows.read("servingsim_attention_" + chip)]
    prompts = {(r["model"], r["heads"], r["prompt"]): r["us"] for r in rows if not r["sequences"]}
    out = []
    for r in rows:
        if not r["sequences"] or bool(r["prompt"]) != mixed:
            continue
        prompt = prompts[r["model"], r["heads"], r["prompt"]] if mixed else 0
        us = r["us"] - prompt
        if us > 2 * prompt or not mixed:  # smaller differences are lost in the noise of the prompt
            out.append((r["sequences"], r["heads"], 1 if mixed else r["heads"] / r["kv_heads"], 128, r["kv"], us, r["heads"] * 1000 + r["sequences"]))
    return np.array(out, float)


def is_plain(r, back):
    """Neither a bias added to the scores nor dropout, which are other kernels."""
    biased, dropped = (8, 13) if back else (3, 9)
    return not r["shapes"][biased] and float(r["arguments"][dropped] or 0) == 0


def ours():
    """Dicts: batch, heads, group, head, q, kv, causal, backward, warm, cold, family, step."""
    out = []
    for r in atlas_rows.kernels():
        if r["op"] in ("sdpa_fwd", "sdpa_bwd", "sdpa_fwd_bhsd", "sdpa_bwd_bhsd"):
            out.append({"batch": r["_b"], "heads": r["_h"], "group": r["_h"] / r["_kv"], "head": r["_d"], "q": r["_s"], "kv": r["_t"],
                        "causal": r["_causal"], "backward": "bwd" in r["op"],
                        **{key: r[key] for key in ("warm", "cold", "family", "step")}})
    for r in atlas_rows.operators():
        if not r["op"].startswith("_cudnn_attention"):
            continue
        back = "backward" in r["op"]
        q, key = r["shapes"][1 if back else 0], r["shapes"][2 if back else 1]
        if q[2] == 1 or not is_plain(r, back):
            continue
        flags = [a for a in r["arguments"] if a in ("True", "False")]
        causal = flags[0 if back else 1] == "True"
        out.append({"batch": q[0], "heads": q[1], "group": q[1] / key[1], "head": q[3], "q": q[2], "kv": key[2], "causal": int(causal), "backward": back,
                    **{k: r[k] for k in ("warm", "cold", "family", "step")}})
    return out


def our_decode():
    out = []
    for r in atlas_rows.kernels():
        if r["op"] == "sdpa_decode":
            out.append({"batch": r["_b"], "heads": r["_h"], "group": r["_h"] / r["_kv"], "head": r["_d"], "kv": r["_t"],
                        **{key: r[key] for key in ("warm", "cold", "family", "step")}})
    for r in atlas_rows.operators():
        if r["op"] == "_cudnn_attention_forward" and r["shapes"][0][2] == 1:
            q, key = r["shapes"][:2]
            out.append({"batch": q[0], "heads": q[1], "group": q[1] / key[1], "head": q[3], "kv": key[2],
                        **{k: r[k] for k in ("warm", "cold", "family", "step")}})
    return out


def experts(chip):
    """type -> rows, experts, width, inner, us, family; on one chip: its share under tensor and expert parallelism"""
    out = {}
    for r in atlas_rows.read("aic_moe_" + chip):
        ep, tp = int(r["moe_ep_size"]), int(r["moe_tp_size"])
        count, tokens, topk = int(r["num_experts"]), int(r["num_tokens"]), int(r["topk"])
        if count % ep or int(r["inter_size"]) % tp:
            continue
        rows = max(1.0, tokens * topk / ep)
        name = r["moe_dtype"]
        out.setdefault(name, []).append((rows, count // ep, int(r["hidden_size"]), int(r["inter_size"]) // tp, float(r["us"]), tokens,
                                         zlib.crc32(("%s %s %d %d" % (r["hidden_size"], r["inter_size"], topk, count)).encode())))
    return {k: np.array(v, float) for k, v in out.items()}
