# SPDX-License-Identifier: Apache-2.0
"""orrery.capture: a training step as traces of all ranks, without a cluster and without data."""

from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
from types import ModuleType
from typing import Any, Callable, Iterable, Optional, Union

from . import _core
from ._error import Error
from ._make import convert
from ._trace import Set


def _module_text() -> str:
    return _core.capture_module()


def _module() -> ModuleType:
    """capture/orrery_capture.py, which is built into the library."""
    known = sys.modules.get("orrery_capture")
    if known is not None:
        return known
    made = ModuleType("orrery_capture")
    sys.modules["orrery_capture"] = made
    try:
        made.__file__ = os.path.join(os.path.dirname(os.path.abspath(__file__)), "orrery_capture.py")
        exec(compile(_module_text(), made.__file__, "exec"), made.__dict__)
    except BaseException:
        del sys.modules["orrery_capture"]
        raise
    return made


def capture(function: Callable[..., Any], world_size: int, *, ranks: Union[str, Iterable[int]] = "auto",
            step: Optional[int] = None, real: bool = False, strict: bool = False, local_size: Optional[int] = None,
            hardware: Optional[str] = None) -> Set:
    """Runs a function that trains for one or more steps as ranks of a job of world_size; returns the traces of all
    ranks.

        def train(rank):
            model = DDP(Model().cuda()); ...; loss.backward(); optimizer.step()
        s = orrery.capture(train, world_size=64)

    Tensors have shapes but no data, and collectives return immediately, so one process without a GPU is enough.
    function takes the rank, or nothing.  ranks: "auto" runs those that can differ, "all", or a list.  step: which
    optimizer step to keep; default, the last.  hardware: a chip whose kernels give durations.  Needs PyTorch 2.4.
    """
    module = _module()
    takes_rank = bool(inspect.signature(function).parameters)
    try:
        document = module.capture(function if takes_rank else lambda rank: function(), None, world_size, ranks=ranks,
                                  step=step, real=real, strict=strict, local_size=local_size)
    except module.CaptureError as e:
        raise Error(str(e), code="input") from e
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "capture.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        return convert(path, "fx", hardware=hardware)
