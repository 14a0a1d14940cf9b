# SPDX-License-Identifier: Apache-2.0
"""Options of a training step: those of `orrery stage` under the same names, and those of a search among them."""

import inspect
import subprocess

import pytest

import orrery

# Each with a step that it changes: the options of stage, and whether a search takes it.
MOE = {"model": "deepseek-v3", "layers": 4, "dp": 8, "ep": 4, "zero": 1, "batch": 16, "seq": 512}
DENSE = {"model": "gpt2", "layers": 4, "dp": 4, "pp": 2, "batch": 16, "seq": 512}
OPTIONS = [
    (MOE, {"dtype": "fp8", "fp8_attention": True}, True),
    (MOE, {"dtype": "fp8", "fp8_scaling": "block"}, True),
    (MOE, {"dtype": "fp8", "fp8_kept": "deepseek"}, True),
    (MOE, {"dtype": "fp8", "fp8_weights": "only"}, True),
    (MOE, {"dtype": "mxfp8"}, True),
    (MOE, {"dtype": "nvfp4"}, True),
    (MOE, {"fp8_dispatch": True}, True),
    (MOE, {"dispatch": "hybridep"}, True),
    (MOE, {"dispatch": "once", "node_ranks": 1}, True),
    (MOE, {"expert_load": 150}, True),
    ({**MOE, "tp": 2}, {"expert_tp": 1}, True),
    ({**MOE, "pp": 2}, {"ep_overlap": True}, True),
    (MOE, {"mtp": True}, True),
    (MOE, {"recompute_parts": ["norm", "mla-up"]}, True),
    ({**DENSE, "zero": 1}, {"shard": 2}, True),
    (DENSE, {"recompute": "full", "recompute_layers": 2}, True),
    (DENSE, {"offload_layers": 1, "offload_percent": 50}, True),
    ({**DENSE, "cp": 2}, {"context": "all-gather"}, True),
    (DENSE, {"attention": "full"}, True),
    ({**DENSE, "tp": 2}, {"tp_overlap": True}, True),
    (DENSE, {"grads_fp32": True}, True),
    (DENSE, {"bucket": "1MB"}, True),
    ({**DENSE, "zero": 3}, {"prefetch": 2}, True),
    (DENSE, {"no_overlap": True}, True),
    (DENSE, {"sync_every_micro_batch": True}, True),
    (DENSE, {"no_clipping": True}, True),
    (DENSE, {"dropout": True}, True),
    (DENSE, {"foreach": True}, True),
    (DENSE, {"moments_bf16": True}, True),
    (DENSE, {"no_master": True}, True),
    (DENSE, {"first_layers": 1}, False),
    (DENSE, {"last_layers": 0}, False),
    (DENSE, {"layout": "Ett|ttL"}, False),
]


def command(options):
    words = []
    for name, value in options.items():
        if name == "model":
            continue
        words += ["--" + name.replace("_", "-")]
        if value is not True:
            words += [",".join(value) if isinstance(value, list) else str(value)]
    return words


@pytest.mark.parametrize("base, own, is_searched", OPTIONS, ids=lambda x: "-".join(x) if isinstance(x, dict) else "")
def test_traces_are_those_of_the_command(base, own, is_searched, tmp_path):
    options = {**base, **own}
    orrery.stage(**options).save(tmp_path / "a.orr")
    subprocess.run(["orrery", "stage", "-q", options["model"], *command(options), "-o", tmp_path / "b.orr"], check=True,
                   stdout=subprocess.DEVNULL)
    made = (tmp_path / "a.orr").read_bytes()
    assert made == (tmp_path / "b.orr").read_bytes()
    if own != {"layout": "Ett|ttL"}:  # an even share
        orrery.stage(**base).save(tmp_path / "c.orr")
        assert made != (tmp_path / "c.orr").read_bytes()


@pytest.mark.parametrize("base, own, is_searched", OPTIONS, ids=lambda x: "-".join(x) if isinstance(x, dict) else "")
def test_plans_keep_them(base, own, is_searched, tmp_path):
    names = inspect.signature(orrery.plan).parameters
    assert is_searched == all(name in names or name == "recompute" for name in own)
    if not is_searched:
        return
    own = {name: value for name, value in own.items() if name != "recompute"}
    fix = {"tp": base.get("tp", 1), "pp": base.get("pp", 1), "cp": base.get("cp", 1), "ep": base.get("ep", 1), "micro_batch": 1,
           "zero": base.get("zero", 0)}
    if fix["pp"] > 1:
        fix["pipeline"] = "1f1b"
    if "recompute_layers" in own:
        fix["recompute"] = "full"
    if "recompute_parts" in own:
        fix["recompute"] = "parts"
    devices = fix["tp"] * fix["pp"] * fix["cp"] * base["dp"]
    machine = "dgx-b200" if own.get("dtype") in ("mxfp8", "nvfp4") else "dgx-h100"
    plans = orrery.plan(base["model"], f"{machine}:2", devices=devices, fix=fix, layers=4, batch=16, seq=512, top=1,
                        progress=False, **own)
    best = plans[0]
    best.stage(layers=4).save(tmp_path / "a.orr")
    subprocess.run(["orrery", "stage", "-q", base["model"], "--layers", "4", *best.command.split(), "--machine", f"{machine}:2",
                    "-o", tmp_path / "b.orr"], check=True, stdout=subprocess.DEVNULL)
    assert (tmp_path / "a.orr").read_bytes() == (tmp_path / "b.orr").read_bytes()
    for name, value in own.items():
        word = "--" + name.replace("_", "-")
        assert word in best.command.split(), best.command
        if name != "bucket":
            kept = best.options[name]
            assert kept == (",".join(value) if isinstance(value, list) else value)


@pytest.mark.parametrize("options, words", [
    ({"fp8_kept": "some"}, "^fp8_kept 'some': there are none, inputs, activations and deepseek$"),
    ({"dtype": "int3"}, "^dtype 'int3': there are bf16, fp16, "),
    ({"dispatch": "never"}, "^dispatch 'never'"),
    ({"recompute_parts": "some"}, "^recompute_parts 'some'"),
    ({"recompute_parts": 5}, "^recompute_parts: "),
    ({"fp8_scaling": "block"}, "fp8-scaling requires dtype fp8"),
    ({"recompute_layers": 3}, "recompute-layers requires recompute full"),
    ({"offload_percent": 30}, "of no layer"),
    ({"mtp": True}, "no multi-token prediction"),
    ({"bucket": "much"}, "much"),
])
def test_wrong_ones_are_named(options, words):
    with pytest.raises(orrery.Error, match=words):
        orrery.stage("gpt2", **options)
    if "recompute_layers" not in options:
        with pytest.raises(orrery.Error, match=words):
            orrery.plan("gpt2", "dgx-h100:1", batch=8, progress=False, **options)


def test_wrong_kinds_are_named():
    for options, error, words in (({"offload_layers": "x"}, TypeError, "^offload_layers: "), ({"dispatch": 5}, TypeError, "^dispatch: "),
                                  ({"offload_percent": 101}, OverflowError, "^offload_percent: expected at most 100"),
                                  ({"shard": -1}, OverflowError, "^shard: ")):
        with pytest.raises(error, match=words):
            orrery.stage("gpt2", **options)
        with pytest.raises(error, match=words):
            orrery.plan("gpt2", "dgx-h100:1", batch=8, progress=False, **options)
    for options in ({"layout": "tt"}, {"recompute": "full", "recompute_parts": "norm"}, {"first_layers": 100, "pp": 2}):
        with pytest.raises(orrery.Error):
            orrery.stage("gpt2", **options)
