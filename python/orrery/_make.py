# SPDX-License-Identifier: Apache-2.0
"""Traces from other sources: models, PyTorch, workloads of other programs."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from . import _core
from ._error import Error
from ._result import Timeline
from ._trace import Path, Set, _encoded, open

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "K": 10**3, "M": 10**6, "G": 10**9,
          "T": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def _bytes(value: Union[None, int, str]) -> Optional[int]:
    """80 * 10**9, or "80GB"."""
    if value is None or isinstance(value, int):
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
    if not match or match.group(2).upper() not in _UNITS:
        raise Error(f"'{value}' is not a size such as 80GB")
    return int(float(match.group(1)) * _UNITS[match.group(2).upper()])


def _parts(value: Union[None, str, Sequence[str]]) -> Optional[str]:
    """"norm,mla-up", or a list of them."""
    if value is None or isinstance(value, str):
        return value
    try:
        return ",".join(value)
    except TypeError:
        raise Error(f"recompute_parts: expected parts of a layer, not {value!r}") from None


def stage(model: Path, *, tp: int = 1, pp: int = 1, dp: int = 1, cp: int = 1, ep: int = 1, batch: int = 0,
          micro_batch: int = 0, seq: int = 0, layers: int = 0, hidden: int = 0, heads: int = 0, kv_heads: int = 0,
          ffn: int = 0, vocab: int = 0, zero: int = 0, pipeline: str = "1f1b", order: Optional[Path] = None, chunks: int = 0,
          first_layers: Optional[int] = None, last_layers: Optional[int] = None, layout: Optional[str] = None,
          no_sequence_parallel: bool = False, recompute: str = "none",
          dtype: str = "bf16", fp8_attention: bool = False, fp8_scaling: Optional[str] = None,
          fp8_kept: Optional[str] = None, fp8_weights: Optional[str] = None, fp8_dispatch: bool = False,
          dispatch: Optional[str] = None, node_ranks: int = 0, expert_load: int = 0, expert_tp: int = 0,
          ep_overlap: bool = False, shard: int = 0, mtp: bool = False, grads_fp32: bool = False, tp_overlap: bool = False,
          attention: str = "causal", context: str = "ring", recompute_parts: Union[None, str, Sequence[str]] = None,
          recompute_layers: int = 0, offload_layers: int = 0, offload_percent: int = 0,
          bucket: Union[None, int, str] = None, prefetch: int = 0, no_overlap: bool = False,
          sync_every_micro_batch: bool = False, no_clipping: bool = False, software: Optional[str] = None,
          dropout: bool = False, foreach: bool = False, moments_bf16: bool = False, no_master: bool = False,
          forward: bool = False, steps: int = 1,
          machine: Optional[Path] = None, device_memory: Union[None, int, str] = None) -> Set:
    """The traces of all ranks that train a language model together, for one step or more.

        s = orrery.stage("llama-3-70b", tp=8, pp=4, dp=4, batch=64)
        s.facts["memory"]        # bytes per pipeline stage, and whether they fit

    model: a name of orrery.models(), or a file (a Hugging Face config.json, or ours).  Options are those of
    `orrery stage`; 0 and None are its defaults (first_layers=0: only the embedding, last_layers=0: only the loss).
    order: a file with a pipeline schedule of your own, instead of pipeline.  recompute_parts: "norm,mla-up", or a list.
    Sizes may be texts: bucket="40MB".
    """
    options = {name: value for name, value in locals().items() if name not in ("model", "device_memory")}
    options["bucket"] = _bytes(bucket)
    options["recompute_parts"] = _parts(recompute_parts)
    options["device_bytes"] = _bytes(device_memory)
    made, facts = _core.stage(Set, os.fspath(model), _encoded(options))
    return Set._with(made, facts)


class Linked(Set):
    """The set of a linked job; timeline is the measurement, all ranks on one clock."""

    __slots__ = ("timeline",)
    timeline: Optional[Timeline]


def link(paths: Union[Path, Sequence[Path]], *, step: Optional[int] = None, strict: bool = False,
         host_scale: Union[str, float] = "auto", timeline: bool = True, threads: int = 0) -> Linked:
    """Merges PyTorch host and device (Kineto) traces of one rank or of a whole job.

    paths: files in any order, or folders; type and rank are detected from the content.  step: only this of several
    steps (N of ProfilerStep#N).  host_scale: "auto" removes the profiler's overhead on the host; 1 keeps the recorded
    times.  facts of the result say what was matched; its timeline is the measurement.
    """
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    options = {"step": step, "strict": strict, "threads": threads,
               "host_scale": -1.0 if host_scale == "auto" else float(host_scale)}
    made, measured, facts = _core.link(Linked, Timeline if timeline else None, [os.fsencode(p) for p in listed],
                                       _encoded(options))
    made.facts = facts
    made.timeline = measured
    return made


def convert(path: Path, kind: str = "et", output: Optional[Path] = None, *, ranks: int = 0, passes: int = 0,
            dims: Sequence[int] = (), updates: bool = False, frequency: int = 0, rank: Optional[int] = None,
            host_scale: Union[str, float] = "auto", hardware: Optional[str] = None,
            sizes: Optional[Mapping[str, int]] = None, model: Optional[str] = None, compress: bool = False,
            schema: Optional[str] = None) -> Set:
    """A workload of another format as traces; with output also written there (.orr, or a prefix).

    kind: "et" (any trace), "text" (ASTRA-sim 1.0; needs ranks), "flexflow", "simai", "pytorch" (a linked trace), "fx"
    (a captured step), "export" (a .pt2 of torch.export) or "goal" (a schedule, as traces of its messages).  Options are those of `orrery convert`.
    """
    if kind == "et":
        made = open(path)
    else:
        options: Dict[str, Any] = {
            "ranks": ranks, "passes": passes, "updates": updates, "frequency": frequency, "rank": rank,
            "host_scale": -1.0 if host_scale == "auto" else float(host_scale), "hardware": hardware, "model": model,
            "sizes": ",".join(f"{name}={value}" for name, value in sizes.items()) if sizes else None}
        if dims:
            options["dims"] = [int(size) for size in dims]
            options["ranks"] = ranks or _product(dims)
        made = Set._with(_core.convert(Set, kind, os.fsencode(path), _encoded(options)))
    if output is not None:
        made.save(output, compress=compress, schema=schema)
    return made


def _product(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= int(size)
    return product


def machines() -> List[str]:
    """Built-in clusters; "dgx-h100:16" is one with 16 nodes."""
    return _core.machine_names()


def models() -> List[str]:
    """Built-in language models."""
    return _core.model_names()
