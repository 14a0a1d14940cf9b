# SPDX-License-Identifier: Apache-2.0
"""truth_tables.py - the tables of truth/tables as cases: the options of `orrery stage` or `orrery serve` for each
row."""

import atexit
import csv
import itertools
import os
import tempfile
from pathlib import Path

TABLES_AT = Path(__file__).resolve().parent / "tables"
MACHINES_AT = Path(__file__).resolve().parent / "machines"
numbers = itertools.count()


def rows_of(name):
    with open(TABLES_AT / f"{name}.csv", encoding="utf-8") as f:
        return list(csv.DictReader(line for line in f if not line.startswith("#")))


class Case:
    """One row: options of the program, the measured value, and the prediction."""

    def __init__(self, label, model, words, run_words, measured, unit="ms", command="stage", measures="time"):
        self.label, self.model, self.words, self.run_words = label, model, words, run_words
        self.measured, self.unit, self.command, self.measures = measured, unit, command, measures
        self.predicted = self.why = self.made = None
        self.host_from = []  # cases that determine the speed of the host
        self.host_name = self.host_key = self.host = None  # which host, the cases that determine its speed, its factor
        self.number = next(numbers)

    def key(self):
        return str((self.command, self.model, self.words, self.run_words, self.measures, self.read.__name__,
                    [(other.key(), other.measured) for other in self.host_from]))

    def software(self):
        words = [str(w) for w in self.words + self.run_words]
        return words[len(words) - 1 - words[::-1].index("--software") + 1]

    def error(self):
        return (self.predicted / self.measured - 1) * 100

    def read(self, made):
        return max(stage["peak_bytes"] for stage in made["memory"]) / 2**30

    def read_run(self, ran):
        return ran["simulated_ns"] / 1e6


class Table:
    def __init__(self, name, cases, about, peer="-", asked="-", wrong=""):
        self.name, self.cases, self.about, self.peer, self.asked, self.wrong = name, cases, about, peer, asked, wrong


# ---- models ----


def gpt(hidden, layers, heads, vocab=51200, positions=2048, ffn=None, **more):
    return {"model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": heads, "n_inner": ffn or 4 * hidden,
            "vocab_size": vocab, "n_positions": positions, "tie_word_embeddings": True, **more}


def degrees(tp=1, pp=1, dp=1, cp=1, ep=1):
    words = []
    for name, n in (("tp", tp), ("pp", pp), ("dp", dp), ("cp", cp), ("ep", ep)):
        if int(n) > 1:
            words += [f"--{name}", int(n)]
    return words


def on(machine, ranks):
    """The number of nodes for a number of ranks."""
    devices = 72 if "nvl72" in machine else 8
    own = MACHINES_AT / f"{machine}.yml"
    return ["--machine", f"{own if own.exists() else machine}:{(int(ranks) + devices - 1) // devices}"]


# ---- Megatron on A100 ----

# At that time gradients were reduced after the last backward pass.
MEGATRON = ["--dtype", "fp16", "--software", "megatron-2021", "--no-overlap"]
MEGATRON_DEEPSPEED = ["--dtype", "fp16", "--software", "megatron-deepspeed", "--no-overlap"]
MEGATRON_2022 = ["--dtype", "fp16", "--software", "megatron-2022", "--no-overlap"]


def padded(vocab, tp):
    """Megatron pads the vocabulary to a multiple of 128 x tp."""
    step = 128 * int(tp)
    return (vocab + step - 1) // step * step


def vtrain(name):
    def cases():
        out = []
        for r in rows_of(name):
            h, l, a, s = (int(r[k]) for k in ("hidden", "layers", "heads", "seq"))
            words = degrees(r["tp"], r["pp"], r["dp"]) + MEGATRON_DEEPSPEED
            words += ["--seq", s, "--batch", r["global_batch"], "--micro-batch", r["micro_batch"], "--recompute", "full",
                      "--no-sequence-parallel"]
            label = f"h{h} l{l} tp{r['tp']} dp{r['dp']} pp{r['pp']} b{r['global_batch']} mb{r['micro_batch']}"
            out.append(Case(label, gpt(h, l, a, vocab=padded(50257, r["tp"])), words, on("vtrain-a100", r["gpus"]),
                            float(r["iteration_ms"])))
        return out

    return cases


def korthikanti():
    out = []
    for r in rows_of("korthikanti_2022_table5"):
        h, l, a = (int(r[k]) for k in ("hidden", "layers", "heads"))
        is_full = r["mode"].startswith("full")
        words = degrees(r["tp"], r["pp"], r["dp"]) + MEGATRON_2022
        words += ["--seq", r["seq"], "--batch", r["batch"], "--micro-batch", r["micro_batch"]]
        words += ["--recompute", "full", "--no-sequence-parallel"] if is_full else ["--recompute", "selective"]
        if int(r["interleave"]) > 1:
            words += ["--pipeline", "interleaved", "--chunks", r["interleave"]]
        label = f"{r['model']} {'full' if is_full else 'selective + sp'}"
        out.append(Case(label, gpt(h, l, a), words, on("dgx-a100", r["gpus"]), float(r["iteration_s"]) * 1e3))
    return out


def korthikanti_memory():
    out = []
    shapes = {"megatron-22B": (6144, 48, 64, 8, 1, 1, 4, 4), "gpt3-175B": (12288, 96, 96, 8, 8, 3, 1, 64),
              "turing-530B": (20480, 105, 128, 8, 35, 3, 1, 280), "megatron-1T": (25600, 128, 160, 8, 64, 1, 1, 512)}
    for r in rows_of("korthikanti_2022_memory"):
        h, l, a, tp, pp, v, mb, batch = shapes[r["model"]]
        base = degrees(tp, pp) + MEGATRON_2022 + ["--seq", 2048, "--batch", batch, "--micro-batch", mb]
        base += ["--pipeline", "interleaved", "--chunks", v] if v > 1 else []

        def of_parameters(made):
            # The figure counts only layers: a stage that is neither first nor last.
            return min(s["weights_bytes"] + s["gradients_bytes"] + s["optimizer_bytes"] for s in made["memory"]) / 2**30

        def of_activations(made):
            return made["memory"][0]["activations_bytes"] / 2**30

        for what, column, words, read in (
            ("parameters and optimizer", "params_and_optimizer_gib", [], of_parameters),
            ("activations", "activations_none_gib", ["--no-sequence-parallel"], of_activations),
            ("activations, selective + sp", "activations_seqsel_gib", ["--recompute", "selective"], of_activations),
        ):
            c = Case(f"{r['model']} {what}", gpt(h, l, a), base + words, [], float(r[column]), "GiB", measures="memory")
            c.read = read
            out.append(c)
    return out


def megatron_2021():
    out = []
    for r in rows_of("megatron_2021_table1"):
        h, l, a, pp = (int(r[k]) for k in ("hidden", "layers", "heads", "pp"))
        words = degrees(r["tp"], pp, r["dp"]) + MEGATRON + ["--seq", r["seq"], "--batch", r["batch"]]
        # The paper states neither micro-batch nor interleaving per row; Megatron's scripts of the time have both.
        micro = {"1.7": 16, "3.6": 16, "7.5": 16, "18.4": 8, "39.1": 4, "76.1": 2, "145.6": 2}.get(r["params_b"], 1)
        words += ["--micro-batch", micro, "--recompute", "full", "--no-sequence-parallel"]
        chunks = {2: 2, 4: 5, 8: 5, 16: 3, 35: 3, 64: 1}.get(pp, 1)
        batches = int(r["batch"]) // (int(r["dp"]) * micro)
        if chunks > 1 and l % (pp * chunks) == 0 and batches % pp == 0:
            words += ["--pipeline", "interleaved", "--chunks", chunks]
        out.append(Case(f"{r['params_b']}B on {r['gpus']}", gpt(h, l, a), words, on("dgx-a100", r["gpus"]),
                        float(r["iteration_s"]) * 1e3))
    return out


def megatron_2020():
    out = []
    for r in rows_of("megatron_2020_v100_a100"):
        h, l, a = (int(r[k]) for k in ("hidden", "layers", "heads"))
        is_a100 = r["hardware"].startswith("A100")
        words = degrees(r["tp"], 1, r["dp"]) + MEGATRON
        words += ["--seq", 1024, "--batch", r["batch"], "--micro-batch", int(r["batch"]) // int(r["dp"]),
                  "--recompute", "full", "--no-sequence-parallel"]
        machine = "dgx-a100-40" if is_a100 else "dgx-2"
        out.append(Case(f"{r['case']} on {r['gpus']} {r['hardware'].split()[0]}", gpt(h, l, a), words,
                        on(machine, r["gpus"]), float(r["iteration_ms"])))
    return out


def mtnlg():
    out = []
    for r in rows_of("mtnlg_530b"):
        words = degrees(r["tp"], r["pp"], r["dp"])
        words += ["--software", "megatron-deepspeed", "--no-overlap"]  # in bf16 (section 2.3), the default
        words += ["--seq", 2048, "--batch", r["batch"], "--micro-batch", 1, "--recompute", "full",
                  "--no-sequence-parallel"]
        out.append(Case(f"530B on {r['gpus']}", gpt(20480, 105, 128, vocab=padded(50272, 8)), words,
                        on("dgx-a100", r["gpus"]), float(r["iteration_s"]) * 1e3))
    return out


def bloom():
    out = []
    for r in rows_of("bloom"):
        h, l, a, tp, pp = (int(r[k]) for k in ("hidden", "layers", "heads", "tp", "pp"))
        words = degrees(tp, pp, r["dp"]) + ["--software", "megatron-deepspeed", "--no-overlap", "--dtype", r["precision"], "--zero", 1]
        words += ["--seq", 2048, "--batch", r["batch"], "--micro-batch", r["micro_batch"], "--recompute", "full", "--no-sequence-parallel"]
        words += ["--first-layers", r["first_layers"], "--last-layers", r["last_layers"]] if r["first_layers"] else []
        model = {"model_type": "bloom", "hidden_size": h, "n_layer": l, "n_head": a, "vocab_size": 250880, "seq_length": 2048}
        label = f"{r['date']} h{h} l{l} a{a} tp{tp} pp{pp} b{r['batch']} mb{r['micro_batch']} {r['precision']}"
        out.append(Case(label, model, words, on("jean-zay-a100", r["gpus"]), float(r["step_s"]) * 1e3))
    return out


# ---- H100 and later ----


def flops_of_token(hidden, layers, ffn, heads, kv, vocab, seq, gated):
    """FLOPs as Megatron and NeMo counted them until August 2025: attention without the halving by a causal mask."""
    per = 12 + 12 * kv / heads + (18 if gated else 12) * ffn / hidden + 12 * seq / hidden + 6 * vocab / (layers * hidden)
    return layers * hidden**2 * per


def megatron_core_2024():
    out = []
    for r in rows_of("megatron_core_2024"):
        h, l, a, tp, pp, gpus, batch = (int(r[k]) for k in ("hidden", "layers", "heads", "tp", "pp", "gpus", "batch"))
        words = degrees(tp, pp, r["dp"]) + ["--software", "megatron-core-2024", "--zero", 1, "--dropout", "--grads-fp32"]
        words += ["--seq", 4096, "--batch", batch, "--micro-batch", 1]
        words += ["--tp-overlap"] if tp > 1 else []
        words += ["--pipeline", "interleaved", "--chunks", l // pp] if pp > 1 else []
        flops = flops_of_token(h, l, 4 * h, 1, 1, 131072, 4096, gated=False)
        seconds = batch * 4096 * flops / (float(r["tflops_per_gpu"]) * 1e12 * gpus)
        model = gpt(h, l, a, vocab=131072, positions=4096) | {"tie_word_embeddings": False}
        out.append(Case(f"{r['kind']} {r['model']} on {gpus}", model, words, on("dgx-h100", gpus), seconds * 1e3))
    return out


def llama3():
    # FSDP, not Megatron: gradients are accumulated over micro-batches and reduced in 32 bits (section 3.3.2, numerical
    # stability).
    out = []
    for r in rows_of("llama3_405b_table4"):
        words = degrees(r["tp"], r["pp"], r["dp"], r["cp"]) + ["--software", "fsdp2-fused"]
        batch = int(r["batch_per_dp"]) * int(r["dp"])
        words += ["--seq", r["seq"], "--batch", batch, "--zero", 2, "--context", "all-gather", "--layers", 126]
        words += ["--pipeline", "interleaved", "--chunks", 8] if int(r["batch_per_dp"]) % int(r["pp"]) == 0 else []
        tokens = batch * int(r["seq"])
        # The unit of the table: model TFLOP/s; 6 x 405e9 operations per token and causal attention.
        flops = 6 * 405.85e9 + 6 * 126 * 16384 * int(r["seq"])
        seconds = tokens * flops / (float(r["tflops_per_gpu"]) * 1e12 * int(r["gpus"]))
        out.append(Case(f"405B on {r['gpus']}, seq {r['seq']}, cp {r['cp']}", "llama-3.1-405b", words,
                        on("hgx-h100", r["gpus"]), seconds * 1e3))
    return out


def titan_words(parallelism):
    words = {}
    for name, n in zip(*[iter(parallelism.replace("asyncTP", "").replace("1f1b", "").replace("interleaved", "").split())] * 2):
        words[name] = int(n)
    return words


def torchtitan():
    out = []
    for r in rows_of("torchtitan"):
        d = titan_words(r["parallelism"])
        fsdp, tp, pp, cp = d.get("fsdp", 1), d.get("tp", 1), d.get("pp", 1), d.get("cp", 1)
        words = degrees(tp, pp, fsdp, cp) + ["--zero", 3 if pp == 1 else 2, "--dtype", r["precision"]]
        # Gradients are reduced in 32 bits by default (mixed_precision_reduce, config_manager.py at 9dec370).
        words += ["--software", "torch-compile-2024" if r["mode"] == "compile" else "fsdp2-eager-2024", "--grads-fp32"]
        batch = int(r["local_batch"]) * fsdp
        # As many micro-batches as pipeline ranks, and context_parallel_rotate_method allgather: torchtitan at 9dec370, the commit that
        # the benchmarks name (parallelisms/pipelining_utils.py, config_manager.py).
        words += ["--seq", r["seq"], "--batch", batch]
        words += ["--micro-batch", max(1, int(r["local_batch"]) // pp) if pp > 1 else r["local_batch"]]
        words += ["--context", "blocks"] if cp > 1 else []
        ckpt = r["act_ckpt"]
        words += ["--recompute", "full" if ckpt == "full" else "operators"]
        # Tables 5 and 6 have AsyncTP throughout, table 4 in one row; those of async-2025-06 are its plain baseline.
        if "async" in r["parallelism"] or r["table"] in ("T5", "T6"):
            words += ["--tp-overlap"]
        if "interleaved" in r["parallelism"]:
            words += ["--pipeline", "interleaved"]
        model = r["model"].split()[0]
        seconds = batch * int(r["seq"]) / (float(r["tokens_s_gpu"]) * int(r["gpus"]))
        machine = "hgx-h200" if "H200" in r["model"] else "titan-h100"
        out.append(Case(f"{r['table']} {r['model']} {r['gpus']} {r['parallelism']} {r['precision']} s{r['seq']} {r['mode']}",
                        model, words, on(machine, r["gpus"]), seconds * 1e3))
    return out


def torchtitan_2024():
    out = []
    for r in rows_of("torchtitan_2024"):
        batch = 64 * int(r["local_batch"])
        words = degrees(dp=64) + ["--zero", 3, "--seq", r["seq"], "--micro-batch", r["local_batch"], "--batch", batch]
        words += ["--software", "fsdp2-eager-2024", "--grads-fp32"]
        layers = {"llama-3-8b": 32, "llama-2-13b": 40}.get(r["model"])
        words += {"none": [], "full": ["--recompute", "full"], "selective op": ["--recompute", "operators"],
                  "selective layer": ["--recompute", "full", "--recompute-layers", (layers or 0) // 2]}[r["act_ckpt"]]
        seconds = int(r["local_batch"]) * int(r["seq"]) / float(r["tokens_s_gpu"])
        out.append(Case(f"{r['model']} x{r['local_batch']} s{r['seq']} {r['act_ckpt']}", r["model"], words, on("dgx-a100", 64),
                        seconds * 1e3))
    return out


CODELLAMA = {"model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 48, "num_attention_heads": 64,
             "num_key_value_heads": 8, "intermediate_size": 22016, "vocab_size": 32000, "max_position_embeddings": 16384,
             "tie_word_embeddings": False}


def fms():
    out = []
    models = {"7b": "llama-2-7b", "13b": "llama-2-13b", "34b": CODELLAMA, "70b": "llama-2-70b"}
    for r in rows_of("fms_fsdp"):
        for chip, gpus, machine in (("a100", 128, "fms-a100"), ("h100", 96, "fms-h100")):
            words = degrees(dp=gpus) + ["--zero", 3, "--seq", 4096, "--batch", 2 * gpus, "--micro-batch", 2]
            words += ["--software", "fsdp-compile-2024"]  # PyTorch's first FSDP
            words += ["--shard", 8] if r["sharding"] == "HSDP" else []
            # HFU over MFU gives the share of layers that are recomputed; recomputing all adds a third.
            share = 3 * (float(r[f"hfu_{chip}"]) / float(r[f"mfu_{chip}"]) - 1)
            layers = {"7b": 32, "13b": 40, "34b": 48, "70b": 80}[r["model"]]
            if share > 0.05:
                words += ["--recompute", "full", "--recompute-layers", min(layers, round(share * layers))]
            tokens = float(r[f"{chip}_tokens_s_gpu"])
            out.append(Case(f"{r['model']} on {gpus} {chip}", models[r["model"]], words, on(machine, gpus),
                            2 * 4096 / tokens * 1e3))
    return out


MPT = {"125m": (768, 12, 12), "350m": (1024, 24, 16), "760m": (1536, 24, 12), "1b": (2048, 24, 16),
       "3b": (2560, 32, 20), "7b": (4096, 32, 32), "13b": (5120, 40, 40), "30b": (7168, 48, 56), "70b": (8192, 80, 64)}


def foundry():
    out = []
    for r in rows_of("llm_foundry_fsdp"):
        h, l, a = MPT[r["model"]]
        gpus, seq = int(r["gpus"]), int(r["seq"])
        words = degrees(dp=gpus) + ["--seq", seq, "--batch", r["global_batch"], "--micro-batch", r["micro_batch"]]
        words += ["--zero", 3 if r["sharding"] == "FULL_SHARD" else 2, "--software", "fsdp-2023"]
        words += ["--dtype", "fp8"] if "fp8" in r["precision"] else []
        words += ["--recompute", "full" if r["act_ckpt"] == "True" else "none"]
        words += ["--sync-every-micro-batch"]
        machine = {"a100_40gb": "foundry-a100-40", "a100_80gb": "foundry-a100", "h100_80gb": "hgx-h100"}[r["gpu"]]
        model = {"model_type": "mpt", "d_model": h, "n_layers": l, "n_heads": a, "expansion_ratio": 4, "vocab_size": 50368,
                 "max_seq_len": seq, "no_bias": True, "attn_config": {"alibi": False}}
        out.append(Case(f"{r['model']} {r['gpu']} x{gpus} s{seq} mb{r['micro_batch']} {r['precision']}", model, words,
                        on(machine, gpus), int(r["global_batch"]) * seq / (float(r["tokens_s_gpu"]) * gpus) * 1e3))
    return out


SYSTEMS = {"DGX-H100": "dgx-h100", "DGX-B200": "dgx-b200", "DGX-B300": "dgx-b300", "DGX-GB200": "gb200-nvl72",
           "DGX-GB300": "gb300-nvl72"}
BRIDGE = {"LLAMA3.1_405B": "llama-3.1-405b", "LLAMA3_70B": "llama-3-70b", "LLAMA3_8B": "llama-3-8b",
          "DeepSeekV3": "deepseek-v3", "DeepSeekV3 (w/o MTP)": "deepseek-v3", "Qwen3_30B_a3B": "qwen3-30b-a3b",
          "Qwen3_235B_a22B": "qwen3-235b-a22b", "GPT OSS 120B": "gpt-oss-120b"}


def busiest(ep, copies):
    """Load of the busiest of ep ranks, in per cent of the mean, if each copy of a token goes to a random expert:
    moe_router_force_load_balancing makes logits random.  The maximum of ep normal samples, as in kernel_times.c."""
    p = (ep - 0.375) / (ep + 0.25)
    return round(100 + 100 * (p**0.135 - (1 - p) ** 0.135) / 0.1975 * ((1 - 1 / ep) / copies) ** 0.5)


PARTS = {"layernorm": "norm", "moe_act": "activation", "mla_up_proj": "mla-up", "mlp": "ffn"}


def bridge():
    out = []
    recipes = {(x["container"], x["model"], x["system"], x["precision"]): x for x in rows_of("megatron_bridge_recipes")}
    for r in rows_of("megatron_bridge_perf"):
        if r["model"] not in BRIDGE or r["kind"] != "Pre-Training Performance":
            continue
        gpus, release, name = int(r["gpus"]), r["container"].split()[0], r["precision"].split()[0]
        recipe = recipes.get((release, r["model"], r["system"], name), {})
        instead = dict(pair.split() for pair in recipe.get("instead", "").split(";") if pair)

        def n(key):  # "64 (0)": the first of two recipes
            first = instead.get(key) or (r[key].split()[0] if r[key] else "")
            return int(first) if first.isdigit() else 1

        tp, pp, cp, vp, ep = n("tp"), n("pp"), n("cp"), n("vp"), n("ep")
        dp = gpus // (tp * pp * cp)
        if dp == 0 or not r["tokens_s_gpu"].split()[0].replace(".", "").isdigit():
            continue
        words = degrees(tp, pp, dp, cp, ep) + ["--seq", r["seq"], "--batch", r["gbs"], "--micro-batch", n("mbs")]
        dtype = {"BF16": "bf16", "NVFP4": "nvfp4", "MXFP8": "mxfp8", "FP8-MX": "mxfp8"}.get(name, "fp8")
        # The page names cudnn-frontend's issue 256 as the cause of GPT-OSS's slowdown in 26.06.01.
        graph = "megatron-core-graph-2026-06" if release == "26.06.01" else "megatron-core-graph"
        software = {"transformer_engine": "megatron-core-layers", "router": "megatron-core-router", "full_iteration": graph,
                    "local": graph}.get(recipe.get("graphs"), "megatron-core")
        words += ["--dtype", dtype, "--software", software]
        words += ["--tp-overlap"] if tp > 1 and "LLAMA" in r["model"] else []
        words += ["--expert-tp", 1] if ep > 1 and tp > 1 else []
        if ep > 1 and recipe.get("dispatcher", "alltoall") != "alltoall":  # a rack of 72 is used as 64
            words += ["--dispatch", "hybridep" if recipe["dispatcher"] == "hybridep" else "once"]
            words += ["--node-ranks", 64 if "GB" in r["system"] else 8]
        if ep > 1:
            words += ["--expert-load", busiest(ep, n("mbs") * int(r["seq"]) // tp * (4 if "OSS" in r["model"] else 8))]
        words += ["--fp8-attention"] if recipe.get("attention") == "fp8" else []
        words += ["--mtp"] if r["model"] == "DeepSeekV3" else []
        words += ["--ep-overlap"] if ep > 1 and recipe.get("overlap") == "1" else []
        if recipe.get("recompute"):
            words += ["--recompute-parts", ",".join(PARTS[x] for x in recipe["recompute"].split("+"))]
        words += ["--zero", 3 if n("fsdp") > 1 and pp == 1 else 1]
        if vp > 1 and pp > 1:
            words += ["--pipeline", "interleaved", "--chunks", vp]
        tokens = float(r["tokens_s_gpu"].split()[0])
        seconds = int(r["gbs"]) * int(r["seq"]) / (tokens * gpus)
        machine = SYSTEMS[r["system"]]
        if recipe.get("overlap") == "1" and recipe.get("dispatcher") == "hybridep":
            machine += "-hybridep"  # moe_hybridep_num_sms 32
        out.append(Case(f"{r['model']} {r['system']} x{gpus} {r['precision']} tp{tp} pp{pp} cp{cp} ep{ep}",
                        BRIDGE[r["model"]], words, on(machine, gpus), seconds * 1e3))
    return out


def mlperf():
    out = []
    for r in rows_of("mlperf"):
        tp, pp, cp, vp, gpus = (int(r[k]) for k in ("tp", "pp", "cp", "vp", "gpus"))
        words = degrees(tp, pp, gpus // (tp * pp * cp), cp) + ["--seq", r["seq"], "--batch", r["batch"]]
        words += ["--micro-batch", r["micro_batch"], "--dtype", r["precision"], "--software", "megatron-core-2024", "--zero", 1]
        words += ["--pipeline", "interleaved", "--chunks", vp]
        words += ["--tp-overlap"] if r["tp_overlap"] == "1" else []
        # TP_ONLY_AMAX_RED; in 3.1 and 4.0 it was asynchronous (NVTE_ASYNC_AMAX_REDUCTION).
        words += ["--fp8-scaling", "delayed-tp"] if r["precision"] == "fp8" and r["round"] >= "v4.1" else []
        words += ["--first-layers", 1, "--last-layers", 1] if r["uneven"] == "1" else []  # of chunks of two
        name = r["submitter"].replace("+NVIDIA", "")
        # 64 of the 72 GPUs of a rack: SEGMENT of the submissions
        where = ["--machine", f"gb200-nvl72:{gpus // 64}"] if "nvl72" in r["machine"] else on(r["machine"], gpus)
        out.append(Case(f"{r['round']} {name} {r['model']} {r['machine']} x{gpus} {r['precision']} b{r['batch']}", r["model"],
                        words, where, float(r["step_s"]) * 1e3))
    return out


def nemotron4(hidden, layers, heads):
    return {"model_type": "nemotron", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": 8, "intermediate_size": 4 * hidden, "vocab_size": 256000, "hidden_act": "relu2",
            "max_position_embeddings": 4096, "partial_rotary_factor": 0.5, "tie_word_embeddings": False}


DGX_CLOUD = {"nemotron4-15b": nemotron4(6144, 32, 48), "nemotron4-340b": nemotron4(18432, 96, 96)}


def dgx_cloud():
    out = []
    for r in rows_of("dgx_cloud"):
        tp, pp, cp, vp, gpus = (int(r[k]) for k in ("tp", "pp", "cp", "vp", "gpus"))
        words = degrees(tp, pp, gpus // (tp * pp * cp), cp) + ["--seq", r["seq"], "--batch", r["batch"]]
        words += ["--micro-batch", r["micro_batch"], "--dtype", r["precision"], "--zero", 1]
        # cross_entropy_loss_fusion of 25.03 is Megatron-Core's own; later scripts have that of Transformer Engine.
        # NVTE_FUSED_ATTN is 0 for Nemotron-4 340B in 25.03 (nemotron/configure.sh), and 1 for all others.
        flash2 = "-flash2" if r["model"] == "nemotron4-340b" else ""
        words += ["--software", f"megatron-core-2024{flash2}" if r["release"] == "25.03" else "megatron-core"]
        words += ["--pipeline", "interleaved", "--chunks", vp] if vp > 1 else []
        words += ["--tp-overlap"] if r["tp_overlap"] == "1" and tp > 1 else []
        words += ["--first-layers", 1, "--last-layers", 1] if r["uneven"] == "1" else []  # of chunks of two
        words += ["--layers", r["layers"]] if r["layers"] not in ("", "126") else []
        words += ["--vocab", 50257] if r["model"] == "llama-3.1-405b" and r["release"] == "25.03" else []
        words += ["--recompute", r["recompute"]] if r["recompute"] != "none" else []
        # Delayed scaling, Transformer Engine's default; NeMo's scripts of 2025 set tp_only_amax_red, the yaml files of 25.03 do not.
        if r["precision"] == "fp8":
            words += ["--fp8-scaling", "delayed" if r["release"] == "25.03" else "delayed-tp"]
        words += ["--dropout"] if r["model"] == "gpt3-175b" else []
        where = ["--machine", f"gb200-nvl72:{gpus // 64}"] if "nvl72" in r["machine"] else on(r["machine"], gpus)
        out.append(Case(f"{r['release']} {r['model']} {r['machine']} x{gpus} {r['precision']} b{r['batch']}",
                        DGX_CLOUD.get(r["model"], r["model"]), words, where, float(r["step_s"]) * 1e3))
    return out


LLAMAS = {"llama-2-7b": (4096, 32, 11008, 32, 32, 32000), "llama-3-8b": (4096, 32, 14336, 32, 8, 128256)}
NEMO = {"gpt3-5b": gpt(4096, 24, 32, vocab=50304), "gpt3-20b": gpt(6144, 44, 48, vocab=padded(50257, 2)),
        "nemotron-8b": nemotron4(4096, 32, 32) | {"num_key_value_heads": 32},
        "nemotron-22b": nemotron4(6144, 40, 48) | {"num_key_value_heads": 48}, "nemotron-340b": nemotron4(18432, 96, 96)}


def nemo_2024():
    out = []
    for r in rows_of("nemo_2024"):
        tp, pp, cp, vp, gpus, batch, seq = (int(r[k]) for k in ("tp", "pp", "cp", "vp", "gpus", "batch", "seq"))
        is_2025 = r["machine"] == "dgx-b200"  # container 25.04, as the recipes 25.05 of dgx-cloud
        words = degrees(tp, pp, gpus // (tp * pp * cp), cp) + ["--seq", seq, "--batch", batch, "--micro-batch", r["micro_batch"]]
        # env_vars of the launcher's conf/config.yaml: NVTE_FUSED_ATTN 0 (562dcb45 of February 2024 to 04b8d098 of August), NCCL_NVLS_ENABLE 0 and
        # NVTE_DP_AMAX_REDUCE_INTERVAL 0, which Transformer Engine reads up to 1.5 (24.03.01).
        words += ["--dtype", "fp8", "--fp8-scaling", "delayed" if r["page"] == "24.07" else "delayed-tp", "--zero", 1]
        words += ["--software", "megatron-core" if is_2025 else "megatron-core-2024-flash2"]
        words += ["--pipeline", "interleaved", "--chunks", vp] if vp > 1 else []
        words += ["--tp-overlap"] if r["tp_overlap"] == "1" else []
        words += ["--dropout"] if r["dropout"] == "1" else []
        if r["tokens_s_gpu"]:
            tokens = float(r["tokens_s_gpu"])
        else:
            tokens = float(r["tflops_per_gpu"]) * 1e12 / flops_of_token(*LLAMAS[r["model"]], seq, gated=True)
        out.append(Case(f"{r['page']} {r['model']} {r['machine']} x{gpus} s{seq} tp{tp} pp{pp} cp{cp}", NEMO.get(r["model"], r["model"]),
                        words, on(r["machine"], gpus), batch * seq / (tokens * gpus) * 1e3))
    return out


def deepseek():
    r = rows_of("deepseek_v3")[0]
    words = degrees(1, 16, 128, 1, 64) + ["--seq", 4096, "--batch", 15360, "--micro-batch", 1, "--zero", 1]
    # Sections 3.2 and 3.3 of the report: DualPipe overlaps expert traffic, tokens are sent to experts in fp8, norms,
    # the up-projections of MLA and SwiGLU are recomputed, scaling is by blocks of 128.
    words += ["--dtype", "fp8", "--fp8-scaling", "block", "--software", "megatron-core"]
    words += ["--pipeline", "dualpipe", "--ep-overlap", "--dispatch", "once", "--mtp", "--fp8-dispatch"]
    words += ["--recompute-parts", "norm,mla-up,activation"]
    return [Case("training on 2048 H800", "deepseek-v3", words, on("h800-deepseek", 2048),
                 15360 * 4096 / (float(r["measured"]) * 2048) * 1e3)]


# ---- our own H200 ----


def own_model(r):
    is_gpt = r["kind"] == "gpt"
    m = {"format": "orrery-model", "version": 1, "name": r["model"], "layers": int(r["L"]), "hidden": int(r["d"]),
         "vocab": int(r["V"]), "heads": int(r["heads"]), "kv_heads": int(r["kv"]), "head_dim": int(r["hd"]),
         "norm": "layer" if is_gpt else "rms", "is_gated": not is_gpt, "has_ffn_bias": is_gpt, "has_qkv_bias": is_gpt,
         "has_output_bias": is_gpt, "is_tied": r.get("tied") == "1"}
    m["position"] = "rotary" if r["rope"] == "1" else "learned" if int(r.get("positions") or 0) else "none"
    if m["position"] == "learned":
        m["max_positions"] = int(r["positions"])
    if int(r["experts"]):
        m.update(experts=int(r["experts"]), experts_per_token=int(r["topk"]), expert_ffn=int(r["ff"]))
    else:
        m["ffn"] = int(r["ff"])
    return m


def own_words(r):
    is_compiled = r["mode"].startswith("compile")
    is_graph = r["mode"] in ("graph", "compile_graph")
    words = ["--batch", r["batch"], "--micro-batch", r["batch"], "--seq", r["seq"], "--no-master"]
    compiled = "torch-compile-whole" if r["mode"] == "compile_whole" else "torch-compile"
    words += ["--software", compiled if is_compiled else "cuda-graph" if is_graph else "torch-eager"]
    words += ["--dropout"] if float(r["dropout"]) and r["mode"] != "forward" else []
    words += ["--foreach"] if r["opt"] == "adamw_foreach" else []
    words += [] if r["clip"] == "1" else ["--no-clipping"]
    words += ["--recompute", "full"] if r["ckpt"] == "1" and r["mode"] != "forward" else []
    words += ["--forward"] if r["mode"] == "forward" else []
    return words, ["--hardware", "h200"] + (["--software", "cuda-graph"] if is_graph else [])


def own_small_step(r):
    """The training step of the same model with 16 tokens."""
    eager = next(x for x in rows_of("h200_steps") if x["model"] == r["model"] and x["chip"] == r["chip"]
                 and x["mode"] == "eager")
    words, run_words = own_words({**eager, "batch": "1", "seq": "16"})
    return Case(f"{r['model']} small", own_model(eager), words, run_words, float(eager["small_ms"]))


def own_steps(keep, gives_host=False):
    def cases():
        out = []
        for r in rows_of("h200_steps"):
            if r["amp"] == "1" or not keep(r):
                continue
            words, run_words = own_words(r)
            chip = "" if r["chip"] == "1" else ", chip 2"
            out.append(Case(f"{r['model']} {r['mode']}{chip}", own_model(r), words, run_words,
                            float(r["stream_ms"] or r["step_ms_median"])))
            if gives_host:
                out[-1].host_from, out[-1].host_name = [own_small_step(r)], r["chip"]
        return out

    return cases


def unseen_steps(*modes, table="h200_unseen"):
    """Models that were measured after everything was fitted."""
    def cases():
        return [Case(f"{r['model']} {r['mode']}", own_model(r), *own_words(r), float(r["stream_ms"]))
                for r in rows_of(table) if r["mode"] in modes]

    return cases


def is_host_bound(r):
    """Does the host take about as long as the kernels of the step, or longer?  Then the device waits."""
    if r["mode"] not in ("eager", "forward"):
        return False
    busy = [x for x in rows_of("h200_steps") if x["model"] == r["model"] and x["profiled_gpu_busy_ms"]]
    is_idle = r["mode"] == "eager" and busy and float(busy[0]["profiled_gpu_busy_ms"]) < 0.85 * float(r["stream_ms"])
    return is_idle or float(r["host_ms_median"]) > 0.9 * float(r["stream_ms"])


def own_inference(phase, mode, table="h200_inference"):
    def cases():
        out = []
        for r in rows_of(table):
            if r["phase"] != phase or r["mode"] != mode:
                continue
            decodes = phase == "decode"
            words = ["--phase", phase, "--batch", r["batch"], "--prompt-tokens", r["context"] if decodes else r["tokens"]]
            words += ["--output-tokens", 1]
            words += ["--software", "cuda-graph" if mode == "graph" else "torch-eager"]
            label = f"{r['model']} batch {r['batch']} {r['tokens']} tokens, context {r['context']}"
            out.append(Case(label, own_model(r), words, ["--hardware", "h200"],
                            float(r["stream_ms"] or r["step_ms_median"]), command="serve"))
        return out

    return cases


def own_inference_eager():
    """The first two rows of each model determine the speed of the host and are not judged."""
    firsts, out = {}, []
    for case in own_inference("prefill", "eager")() + own_inference("decode", "eager")():
        own = firsts.setdefault(case.model["name"], [])
        if len(own) < 2:
            own.append(case)
        else:
            case.host_from, case.host_name = own, "serving"
            out.append(case)
    return out


# ---- our own captured steps ----

CAPTURES_AT = Path(__file__).resolve().parent / "captures"


def own_captured(host_bound):
    def cases():
        return [c for c in own_captures() if c.is_host_bound == host_bound]

    return cases


def own_captures():
    out = []
    for r in rows_of("h200_captured"):
        name = r["model"] + ("_forward" if r["mode"] == "forward" else "")
        case = Case(f"{r['model']} {r['mode']}", str(CAPTURES_AT / f"{name}.json.gz"), [],
                    ["--hardware", "h200"] + ([] if r["mode"] == "graph" else ["--software", "torch-eager"]),
                    float(r["stream_ms"]), command="convert fx")
        busy = [float(x["profiled_gpu_busy_ms"]) for x in rows_of("h200_captured")
                if x["model"] == r["model"] and x["profiled_gpu_busy_ms"]]
        is_idle = r["mode"] == "eager" and busy and busy[0] < 0.85 * float(r["stream_ms"])
        case.is_host_bound = r["mode"] != "graph" and (is_idle or float(r["host_ms_median"]) > 0.85 * float(r["stream_ms"]))
        out.append(case)
    return out


def vllm():
    """Mean time per output token of 300 requests, estimated by `orrery serve`; parallelism and the link of the two
    devices are from bench/examples/RTXPRO6000/*/config.json in the source."""
    out = []
    for model, name, words in (("Llama-3.1-8B", "llama-3.1-8b", []), ("Qwen3-32B", "qwen3-32b", ["--tp", 2, "--link-rate", "16GB/s"]),
                               ("Qwen3-30B-A3B", "qwen3-30b-a3b", ["--dp", 2, "--ep", 2, "--link-rate", "16GB/s"])):
        rows = [r for r in rows_of("llmservingsim_vllm_requests") if r["model"] == model]
        path = Path(tempfile.gettempdir()) / f"orrery_truth_{os.getpid()}_{name}.csv"
        path.write_text("arrival_us,prompt,output\n" + "".join(
            f"{int(float(r['arrival_s']) * 1e6)},{r['input_tokens']},{r['output_tokens']}\n" for r in rows))
        atexit.register(path.unlink, missing_ok=True)
        times = [float(r["tpot_ms"]) for r in rows if float(r["tpot_ms"]) > 0]
        words = words + ["--requests", path, "--max-batch", 128, "--max-tokens", 2048, "--chunk", 2048, "--hardware", "rtx-pro-6000",
                         "--device-memory", "96GB"]
        case = Case(f"{model} on {'two RTX PRO 6000' if '--link-rate' in words else 'one RTX PRO 6000'}", name, words, [],
                    sum(times) / len(times), command="serve", measures="memory")
        case.read = lambda made: made["estimate"]["next_token_mean_ps"] / 1e9
        out.append(case)
    return out


def own_memory():
    out, measured = [], {r["model"]: r for r in rows_of("h200_memory")}
    for r in rows_of("h200_steps"):
        if r["model"] not in measured or r["mode"] != "eager" or r["chip"] != "1":
            continue
        words, _ = own_words(r)
        peak = max(float(v) for k, v in measured[r["model"]].items() if k.endswith("_peak"))
        out.append(Case(f"{r['model']}", own_model(r), words, [], peak / 2**30, "GiB", measures="memory"))
    return out


TABLES = [
    Table("h200-device", own_steps(lambda r: r["mode"] in ("graph", "eager") and not is_host_bound(r)),
          "Training steps on our own H200: as CUDA graphs, and eager where the GPU is the bottleneck.", "-", "2.5 %"),
    Table("h200-compiled", own_steps(lambda r: r["mode"].startswith("compile"), gives_host=True),
          "Training steps under torch.compile; the speed of the host is taken from an eager step of 16 tokens.", "-", "5 %",
          "the host time of compiled blocks (gpt2_124m_b1) is the mean of two models on another host; steps issued back to back ran "
          "8 % slower than single ones (llama_110m_b32 64.0 and 59.1 ms, qwen_0_5b 67.1 and 62.6 ms)."),
    Table("h200-host", own_steps(lambda r: r["mode"] == "eager" and is_host_bound(r), gives_host=True),
          "Eager steps where the host is the bottleneck; its speed is taken from a step of 16 tokens.", "-", "12 %"),
    Table("h200-forward", own_steps(lambda r: r["mode"] == "forward" and not is_host_bound(r)),
          "Forward passes where the GPU is the bottleneck.", "-", "4 %"),
    Table("h200-forward-host", own_steps(lambda r: r["mode"] == "forward" and is_host_bound(r), gives_host=True),
          "Forward passes where the host is the bottleneck; its speed is taken from a training step of 16 tokens.", "-", "12 %",
          "the same pass took 1.2 ms on one host and 0.5 ms on the other, and 3.2 to 4.6 ms on one host within an hour."),
    Table("h200-captured", own_captured(False),
          "Captured steps of BERT, ViT, ResNet and ConvNeXt, through `orrery convert fx`.", "-", "3 %",
          "ConvNeXt was captured on a CPU, whose autocast keeps layer norms in 16 bits; the captures are corrected to what a GPU does, "
          "but a forward pass is still 10 % too short. ResNet-18: gaps between kernels are about 1 us longer in eager steps "
          "than in graphs, which is not modelled."),
    Table("h200-captured-host", own_captured(True), "The same where the host is the bottleneck.", "-", "12 %",
          "forward passes on this host took up to twice as long as the sum of single operators; on the other host both were close."),
    Table("h200-unseen", unseen_steps("graph"), "Twelve models measured after everything was fitted, as CUDA graphs.", "-", "3 %", ""),
    Table("h200-unseen-eager", unseen_steps("eager", "forward"), "The same, eager steps and forward passes.", "-", "-", ""),
    Table("h200-unseen-compiled", unseen_steps("compile_blocks", "compile_graph"), "Eight of them with fewer layers, compiled.", "-", "5 %", ""),
    Table("h200-later-compiled", unseen_steps("compile_blocks", "compile_graph", table="h200_later"),
          "Six models measured after compiled layers and decoding had been fitted again.", "-", "5 %", ""),
    Table("h200-later-decode", own_inference("decode", "graph", "h200_later_decode"), "A token after 512 to 2,048, the same six.", "-", "4 %", ""),
    Table("h200-unseen-decode", own_inference("decode", "graph", "h200_unseen_decode"), "A token after 1,024 to 6,144, eight of them.", "-", "4 %", ""),
    Table("h200-prefill", own_inference("prefill", "graph"), "Prefill, as CUDA graphs.", "-", "4 %"),
    Table("h200-decode", own_inference("decode", "graph"), "Decode steps, one token per sequence, as CUDA graphs.", "-", "4 %"),
    Table("h200-inference-eager", own_inference_eager,
          "Prefill and decode steps, eager; the speed of the host is taken from two rows of each model, which are not counted here, "
          "and shrunk towards the mean of all models.", "-", "12 %",
          "the host varies: the same step took 13.7 to 21.6 ms within minutes (qwen_0_5b), 10.2 to 16.8 ms (llama_1b_rope)."),
    Table("vllm-tpot", vllm, "Mean time per output token of vLLM 0.19, 300 requests at 10/s.", "1-2 % (LLMServingSim)", "5 %",
          "vLLM's own work between iterations and the latency of its all-reduces (20 us in the source's configuration) are not modelled."),
    Table("h200-memory", own_memory, "Peak memory of the eager steps; the memory of the previous model was freed first.", "-", "5 %",
          "olmoe: the router's tables and their indices are not counted."),
    Table("vtrain-single", vtrain("vtrain_ground_truth_single"),
          "vTrain (MICRO 2024): 750 iterations of GPT models on 1 to 8 A100 of one host; Megatron-DeepSpeed, fp16, full "
          "recomputation.", "8.37 % (vTrain)", "8 %"),
    Table("vtrain-multi", vtrain("vtrain_ground_truth_multi"), "vTrain: 64 to 512 A100.", "14.73 % (vTrain)", "12 %"),
    Table("korthikanti-2022", korthikanti, "Korthikanti et al. 2022, table 5: A100, full recomputation, or selective with "
          "sequence parallelism.", "3.65 % (Calculon)", "3.5 %"),
    Table("megatron-2021", megatron_2021, "Narayanan et al. 2021, table 1: 32 to 3,072 A100.", "-", "8 %"),
    Table("megatron-2020", megatron_2020, "Megatron-LM's README of 2020: V100 and A100.", "-", "8 %"),
    Table("mtnlg", mtnlg, "Smith et al. 2022: 530B on 2,240 to 3,360 A100.", "-", "8 %",
          "Megatron-LM reached 163 TFLOP/s per device with the same model (megatron-2021), DeepSpeed's pipeline 113 to 126. The three "
          "rows lie on a line: 0.196 s for each of 274, 226 and 194 pipeline slots plus 6.3 s; predicted are 0.191 s and 0.8 s. The "
          "paper says bf16 and counts 20 bytes per parameter, including gradients in 16 and in 32 bits. The code of the run is not "
          "public, so gradients are accumulated as in DeepSpeed's first pipeline with bf16, of April 2022 (BF16_Optimizer: cast in one "
          "pass, added in another). Nothing in that code or in Megatron explains 5 s per step. Messages between stages are sent whole; "
          "DeepSpeed sends an eighth and gathers three times, which takes half as long. No source states the sequences per "
          "micro-batch; 1 is assumed. With 2 the bubble is as long as the three rows suggest, and they are 6 to 7 % too fast."),
    Table("bloom", bloom, "BigScience's trials of February 2022 and BLOOM: 65 layouts of 176 to 203 billion parameters on 384 A100; Megatron-DeepSpeed.",
          "-", "8 %",
          "every row is too fast. With four tensor-parallel ranks and twelve stages, as BLOOM was trained, most are off by 1 to 11 %; with "
          "eight ranks and few stages by 20 to 29 %. The missing time grows by about 2 s per billion parameters on a device, as if "
          "gradients and weights travelled at a quarter of the 400 Gb/s that the source states (its one measured all-reduce, over four "
          "nodes and before hosts were repaired, reached 40 Gb/s). Heads of 108 elements (27 to 29 %) are counted as products with odd "
          "rows, 2.4 times as long, which is not enough. Not explained: heads of 216 with a micro-batch of one (35 %; the source's row "
          "with two takes 0.70 times as long), 104 heads (19 %). The first row contradicts the second, which does a third more work in "
          "the same time. CUDA_LAUNCH_BLOCKING=1, which the source set to prevent hangs, is not modelled."),
    Table("megatron-core-2024", megatron_core_2024, "Megatron-LM's README of 2024: GPT models of 1.7 to 462 billion parameters on 48 to 6,144 H100, bf16.", "-", "8 %",
          "neither the micro-batch nor the number of chunks is known. From 96 to 4,608 GPUs the same model loses 10.2 % of its efficiency "
          "as measured and 10.8 % as predicted, but is 7 to 8 % too fast throughout; small models on few ranks are 10 and 19 % too fast. "
          "32B is 35 % too slow: its 32-bit gradients are reduced during the last of four micro-batches, for which the measured time "
          "is too short; with micro-batches of two or four it would be 6 or 3 % too slow, and 1.7B 20 or 25 % too fast."),
    Table("nemo-2024", nemo_2024, "NeMo's pages of 24.07 (11 models on 8 to 128 H100) and of long sequences (4,096 to 1,048,576 tokens on H100 and B200), fp8.",
          "-", "8 %",
          "on H100, FlashAttention 2 is modelled as 1.8 times the time of the chip's attention, whose public rows of 2,048 to 8,192 tokens "
          "(vLLM's, paged) are 10 to 40 % slower than cuDNN on our H200: rows with much attention are 8 to 16 % too slow. On B200 all "
          "long sequences are 7 % too fast. vboost, which a commit of the page names, is not modelled."),
    Table("llama3", llama3, "Llama 3, table 4: 405B on 8,192 and 16,384 H100.", "-", "8 %",
          "the paper does not name its kernels: attention is assumed to be cuDNN's, without the document mask. Rows of 8,192 tokens are "
          "7 to 8 % too fast."),
    Table("torchtitan", torchtitan, "torchtitan's benchmarks.", "-", "8 %",
          "context parallelism: with balanced shares, PyTorch's default, rows over four and eight ranks are 13 to 32 % too fast, even with "
          "the cost of gathering and merging blocks and the power that FlashAttention 2 draws at 500 W. PyTorch's ring of the time balances "
          "the work (torch/distributed/tensor/experimental/_attention.py: half of the queries or half of the keys of each later block), "
          "and layers are recomputed whole, as modelled. From two to four ranks only table 2 grows by 2.4 times, more than its "
          "sequence; table 6 grows by 1.5. Neither contiguous nor balanced shares explain both, so the default is used. FlashAttention 2 "
          "is one factor for all shapes. After everything else is subtracted, table 2 leaves 314 TFLOP/s for attention over two ranks, "
          "197 and 185 over four and eight."),
    Table("torchtitan-2024", torchtitan_2024, "torchtitan of 2024 on 64 A100, FSDP2 alone.", "-", "8 %",
          "the page states neither the network (a DGX A100's is assumed) nor whether layers were compiled (eager, the default, is assumed)."),
    Table("fms-fsdp", fms, "IBM fms-fsdp: Llama 2 sizes on 128 A100 and 96 H100.", "-", "8 %"),
    Table("llm-foundry", foundry, "LLM Foundry: MPT models with FSDP.", "-", "8 %"),
    Table("megatron-bridge", bridge, "Megatron-Bridge: H100, B200, GB200, GB300.", "-", "8 %",
          "eager steps whose expert all-to-alls overlap with another micro-batch (Qwen3 on H100 of 25.11 and 26.02, on B200 and B300) are "
          "15 to 42 % too fast; the host time of that schedule was not measured (Megatron-LM's pull request 2168 says that it costs some). "
          "Without the overlap the same software on H100 is within 5 %: its host time is measured with our own calls "
          "(measure/experts_host.py) to within 25 %. On Blackwell, steps with parts of layers as graphs are 6 to 21 % too fast, steps "
          "that are one graph up to 18 %. GPT-OSS in bf16 is 16 to 23 % too fast with all the passes found in its software; the release "
          "with a slow kernel 35 %. Offloading activations to host memory (Llama 3 70B in FP8) takes no time in the model."),
    Table("mlperf", mlperf, "MLPerf Training 3.1 to 5.1: GPT-3 175B and Llama 3.1 405B on 64 to 11,616 H100, H200, B200, GB200.",
          "-", "8 %",
          "GPT-3 with micro-batches of one sequence is 8 to 11 % too fast, with two 2 to 12 % too slow (except for Oracle's 3,072 GPUs): "
          "not explained. How far the clock of a Blackwell falls at its power limit is assumed to be as on the H200 (by share of peak)."),
    Table("dgx-cloud", dgx_cloud, "NVIDIA's DGX Cloud recipes 25.03 and 25.05: GPT-3 175B, Llama 3.1 8B to 405B, Nemotron-4 15B and 340B on 8 to "
          "2,304 H100 and 128 to 512 GB200.", "-", "8 %",
          "rows are too fast, those of Nemotron-4 15B most. In fp8 the error grows with the number of ranks, which reduce maxima after each "
          "pass: how far ranks drift apart between two of these reductions is not modelled. While a collective holds 16 multiprocessors, "
          "GEMMs take 1.19 to 1.24 times as long (measure/overlap.csv); the machine's overlap_cost, the share of "
          "multiprocessors, gives 1.14."),
    Table("deepseek-v3", deepseek, "DeepSeek-V3: 2,048 H800.", "-", "-",
          "the measured time is derived from all GPU hours, including those lost to failures and checkpoints."),
    Table("korthikanti-memory", korthikanti_memory, "Korthikanti et al. 2022, figure 1: bytes per device.",
          "2-11 %", "5 %"),
]
