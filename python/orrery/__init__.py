# SPDX-License-Identifier: Apache-2.0
"""Execution traces of distributed AI workloads: read, make, check, simulate, explain.

    import orrery

    step = orrery.stage("llama-3-8b", tp=8, pp=2, dp=2, batch=32)
    result = orrery.run(step, machine="dgx-h100:4")
    print(result.time_ms)
    result.report("step.html")

docs/python.md is the guide.  Invalid input raises orrery.Error, with file and location.
"""

from ._capture import capture
from ._core import Node, version as __version__
from ._error import Error
from ._make import Linked, convert, link, machines, models, stage
from ._plan import Plan, Plans, plan
from ._result import CriticalPath, Result, Timeline, run
from ._sweep import Sweep, sweep
from ._trace import COLLECTIVES, NODE_TYPES, NO_VALUE, Check, Columns, Finding, Set, Trace, Value, check, fix, open

__all__ = ["COLLECTIVES", "NODE_TYPES", "NO_VALUE", "Check", "Columns", "CriticalPath", "Error", "Finding", "Linked",
           "Node", "Plan", "Plans", "Result", "Set", "Sweep", "Timeline", "Trace", "Value", "__version__",
           "capture", "check", "convert", "fix", "link", "machines", "models", "open", "plan", "run", "stage", "sweep"]
