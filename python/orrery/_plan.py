# SPDX-License-Identifier: Apache-2.0
"""The best parallelism for a model on a machine."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from . import _core
from ._error import Error
from ._progress import Line
from ._make import _bytes, _parts, stage
from ._trace import Path, Set, _encoded


class Plan:
    """One plan: options of orrery.stage, and the cost of a step.

    step_s with its 90 % interval low_s to high_s, tokens_per_s, mfu, usd_per_mtoken, memory_bytes of the fullest
    device, shares of the step, limit (the largest loss), words and command.
    """

    options: Dict[str, Any]
    bound_s: float
    step_s: float
    low_s: float
    high_s: float
    tokens_per_s: float
    mfu: float
    usd_per_mtoken: float
    watt_hours_per_mtoken: float
    memory_bytes: int
    shares: Dict[str, float]
    limit: str
    words: str
    command: str

    def __init__(self, model: str, machine: str, fields: Mapping[str, Any]) -> None:
        self.model, self.machine = model, machine
        for name, value in fields.items():
            setattr(self, name, value)

    def stage(self, **more: Any) -> Set:
        """The traces of a step of this plan."""
        options: Dict[str, Any] = {**self.options, "machine": self.machine, **more}
        return stage(self.model, **options)

    def __repr__(self) -> str:
        return f"<orrery.Plan {self.words}: {1000 * self.step_s:,.1f} ms, {self.memory_bytes / 1e9:.1f} GB>"


class Plans:
    """The result of a search, best plan first; counts has how many plans were legal, fitted into memory, and were
    simulated."""

    def __init__(self, plans: List[Plan], counts: Dict[str, int]) -> None:
        self.plans, self.counts = plans, counts

    def __len__(self) -> int:
        return len(self.plans)

    def __getitem__(self, index: int) -> Plan:
        return self.plans[index]

    def __iter__(self) -> Iterator[Plan]:
        return iter(self.plans)

    def frame(self) -> Any:
        """A pandas data frame, one row per plan."""
        import pandas  # type: ignore
        own = ("step_s", "low_s", "high_s", "tokens_per_s", "mfu", "usd_per_mtoken", "memory_bytes", "limit")
        return pandas.DataFrame([{**p.options, **{n: getattr(p, n) for n in own}, **p.shares} for p in self.plans])

    def _repr_html_(self) -> str:
        return str(self.frame().head(10).to_html(index=False))

    def __repr__(self) -> str:
        return f"<orrery.Plans: {len(self.plans)} simulated of {self.counts['legal']} legal; the best: " \
               f"{self.plans[0] if self.plans else None}>"


def plan(model: Path, machine: Path, *, batch: int = 0, seq: int = 0, devices: int = 0, goal: str = "time", top: int = 10,
         fix: Optional[Mapping[str, Union[int, str]]] = None, software: Optional[str] = None, layers: int = 0,
         dtype: Optional[str] = None, fp8_attention: bool = False, fp8_scaling: Optional[str] = None,
         fp8_kept: Optional[str] = None, fp8_weights: Optional[str] = None, fp8_dispatch: bool = False,
         dispatch: Optional[str] = None, node_ranks: int = 0, expert_load: int = 0, expert_tp: int = 0,
         ep_overlap: bool = False, shard: int = 0, mtp: bool = False, grads_fp32: bool = False, tp_overlap: bool = False,
         attention: str = "causal", context: str = "ring", recompute_parts: Union[None, str, Sequence[str]] = None,
         recompute_layers: int = 0, offload_layers: int = 0, offload_percent: int = 0,
         bucket: Union[None, int, str] = None, prefetch: int = 0, no_overlap: bool = False,
         sync_every_micro_batch: bool = False, no_clipping: bool = False, dropout: bool = False, foreach: bool = False,
         moments_bf16: bool = False, no_master: bool = False,
         usd_per_hour: float = 0, reserve: Union[None, int, str] = None, no_prune: bool = False, threads: int = 0,
         max_seconds: float = 0, max_memory: Union[None, int, str] = None, max_events: int = 0,
         progress: Union[bool, None, Callable[[Dict[str, int]], None]] = True) -> Plans:
    """Searches every legal parallelism for a model on a machine and returns the best, simulated.

        plans = orrery.plan("llama-3-70b", "dgx-h100:16", batch=512)
        plans[0], plans.frame()
        orrery.run(plans[0].stage(), machine="dgx-h100:16").report("best.html")

    Options of the step that are not searched are those of orrery.stage, under the same names.  recompute_parts is one
    more way to recompute that plans may have; recompute_layers applies to plans with full recomputation.

    goal: "time" of a step, "cost" of a token or "memory".  top: simulate at least this many plans; the best one is
    proven.  fix: axes not to search, such as {"tp": 8, "zero": 1}.  progress: a line while it searches, or a callable
    (counts), which is called ten times a second; an exception in it, or Ctrl-C, ends the search.

    max_seconds, max_memory (bytes, or "8GiB"; of the whole process), max_events (of all simulations together): a search
    that needs more ends with an Error whose result has the plans found so far.  0 or None: no limit.
    """
    given = dict(locals())
    if goal not in ("time", "cost", "memory"):
        raise Error(f"goal is time, cost or memory, not '{goal}'")
    if not 0 <= max_seconds < float("inf"):
        raise Error(f"max_seconds: a time was expected, not {max_seconds}")
    own = ("model", "fix", "max_memory", "progress")  # not options of the search
    options: Dict[str, Any] = {name: value for name, value in given.items() if name not in own}
    options["reserve"] = _bytes(reserve)
    options["bucket"] = _bytes(bucket)
    options["recompute_parts"] = _parts(recompute_parts)
    options["max_bytes"] = _bytes(max_memory)
    encoded = _encoded(options)
    encoded["fix"] = [f"{name.replace('_', '-')}={value}".encode() for name, value in (fix or {}).items()]
    line = Line()

    def show(now: Dict[str, int]) -> None:
        line.show(f"searching: {now['legal']:,} plans, {now['fitting']:,} fit, {now['simulated']:,} of "
                  f"{now['to_do']:,} simulated")
    try:
        found, counts, limit = _core.plan(os.fspath(model), encoded,
                                          show if progress is True else progress if callable(progress) else None)
    finally:
        line.end()
    plans = Plans([Plan(os.fspath(model), os.fspath(machine), fields) for fields in found], counts)
    if limit is not None:
        error = Error(f"{limit}: {'these are the best so far' if found else 'no plan was simulated'}", code="stopped")
        error.result = plans
        raise error
    return plans
