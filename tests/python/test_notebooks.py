# SPDX-License-Identifier: Apache-2.0
"""The notebooks, cell by cell as scripts: no kernel is needed.  Cells that plot are left out without matplotlib."""

import importlib.util
import json
import os
import pathlib

import pytest

NOTEBOOKS = sorted((pathlib.Path(os.environ["ORR_ROOT"]) / "python/notebooks").glob("*.ipynb"))


def test_there_are_four():
    assert [path.stem for path in NOTEBOOKS] == ["first_simulation", "measured_and_simulated", "plan_search",
                                                 "trace_generator"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    has_plots = importlib.util.find_spec("matplotlib") is not None
    space = {"__name__": "__main__"}
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in cells), "notebooks are kept without outputs"
    for number, cell in enumerate(cells):
        text = "".join(cell["source"])
        if "plt" in text and not has_plots:
            continue
        exec(compile(text, f"{path.stem}, cell {number}", "exec"), space)
