# SPDX-License-Identifier: Apache-2.0
"""What the tests of the old generator share: inputs made from a table, runs under the old name, TAP."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def read_table():
    return json.loads((ROOT / "tests" / "golden" / "gemm_cases.json").read_text())


def shapes_text(rows):
    """The CSV file; its first line is skipped by the old program, whatever it says."""
    heading = "Layer,m,n,k" + (",CustomizedParallelization" if len(rows[0]) == 5 else "")
    return "\n".join([heading, *(",".join(str(field) for field in row) for row in rows)]) + "\n"


def config_text(array, backend, run_name=None):
    """A configuration as the simulator of that generation wants it."""
    rows, columns, dataflow, *buffers = array
    unit = "kB" if backend == "v2" else ""
    run_name = run_name or ("run" if backend == "v2" else '"run"')
    lines = ["[general]", f"run_name = {run_name}", "[architecture_presets]",
             f"ArrayHeight: {rows}", f"ArrayWidth: {columns}",
             *(f"{name}SramSz{unit}: {size}" for name, size in zip(("Ifmap", "Filter", "Ofmap"), buffers)),
             "IfmapOffset: 0", "FilterOffset: 10000000", "OfmapOffset: 20000000", f"Dataflow: {dataflow}"]
    if backend == "v2":
        lines += ["Bandwidth: 10", "[run_presets]", "InterfaceBandwidth: CALC"]
    return "\n".join(lines) + "\n"


def workload_text(parallel, backend, names, rows):
    """The file of a case: tabs, a blank before times with v2, no end of the last line."""
    blank = " " if backend == "v2" else ""
    lines = [parallel, str(len(rows))]
    for name, row in zip(names, rows):
        passes = [field for i in (0, 3, 6) for field in (f"{blank}{row[i]}", row[i + 1], str(row[i + 2]))]
        lines.append("\t".join([name, "-1", *passes, "100", row[9]]))
    return "\n".join(lines)


def generate(mnk, config, parallel, npus, packages, size, backend, out, *more):
    """Run the old name.  Options in the spellings its users know: one dash or two, = or a blank."""
    return subprocess.run(
        ["gen_astrasim_workload_input.py", f"-mnk={mnk}", "--scalesim_config", str(config), f"--parallel={parallel}",
         "-num_npus", str(npus), "--num_packages", str(packages), f"--datatype_size={size}", "--scalesim_path=unused",
         f"--output_file={out}", "--compat", backend, *more], capture_output=True, text=True)


def judge(done, out, wanted):
    """'' when it wrote these bytes and said nothing."""
    out = pathlib.Path(out)
    if done.returncode or done.stderr or done.stdout:
        return f"exit status {done.returncode}: {done.stdout}{done.stderr}"
    got = out.read_bytes()
    return "" if got == wanted else f"expected {wanted!r}, got {got!r}"


def print_tap(results):
    print(f"1..{len(results)}")
    for number, (name, words) in enumerate(results, 1):
        print(f"{'not ' if words else ''}ok {number} - {name}")
        if words:
            print(f"# {words}")
    return 1 if any(words for _, words in results) else 0
