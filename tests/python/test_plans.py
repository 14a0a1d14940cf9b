# SPDX-License-Identifier: Apache-2.0
"""orrery.plan: the search for a parallelism."""

import pytest

import orrery

OPTIONS = {"batch": 16, "seq": 512, "layers": 4}


def test_the_best_plan_is_what_a_run_of_it_says():
    told = []
    plans = orrery.plan("gpt2", "dgx-h100:1", top=3, progress=told.append, **OPTIONS)
    assert len(plans) >= 3 and plans.counts["legal"] >= plans.counts["fitting"] >= plans.counts["simulated"] >= 3
    steps = [p.step_s for p in plans]
    assert steps == sorted(steps) and all(p.bound_s <= p.step_s * (1 + 1e-9) for p in plans)
    best = plans[0]
    o = best.options
    assert o["tp"] * o["pp"] * o["dp"] * o["cp"] == 8 and best.low_s <= best.step_s <= best.high_s
    assert sum(best.shares.values()) == pytest.approx(1, abs=0.02)
    s = best.stage(layers=4)
    assert len(s) == 8
    assert orrery.run(s, machine="dgx-h100:1").time_ns / 1e9 == pytest.approx(best.step_s, rel=0.02)
    frame = plans.frame()
    assert list(frame["step_s"]) == steps and "<table" in plans._repr_html_() and "legal" in repr(plans)
    assert all(c["simulated"] <= c["legal"] for c in told)


def test_what_is_fixed_is_not_searched():
    plans = orrery.plan("gpt2", "dgx-h100:1", top=1, fix={"tp": 2, "pp": 1}, **OPTIONS)
    assert all(p.options["tp"] == 2 and p.options["pp"] == 1 for p in plans)


def test_limits_end_a_search_with_what_is_known():
    whole = orrery.plan("gpt2", "dgx-h100:1", top=1, progress=False, **OPTIONS)
    for threads in (1, 3):
        with pytest.raises(orrery.Error, match="^the limit of 3000 events is reached: these are the best so far$") as caught:
            orrery.plan("gpt2", "dgx-h100:1", no_prune=True, progress=False, threads=threads, max_events=3000, **OPTIONS)
        known = caught.value.result
        assert caught.value.code == "stopped" and 0 < len(known) < known.counts["fitting"]
        assert known[0].step_s == whole[0].step_s
        # as many events as `run` counts
        assert sum(orrery.run(p.stage(layers=4), machine="dgx-h100:1", progress=False).summary["events"] for p in known) <= 3000
    for limit, words in (({"max_events": 1}, "the limit of 1 event is reached: no plan was simulated"),
                         ({"max_memory": "1KiB"}, "the limit of 1.00 KiB of memory is reached: no plan was simulated"),
                         ({"max_seconds": 1e-9}, "the limit of 1e-09 s is reached: no plan was simulated")):
        with pytest.raises(orrery.Error, match=words) as caught:
            orrery.plan("gpt2", "dgx-h100:1", progress=False, **limit, **OPTIONS)
        assert caught.value.code == "stopped" and len(caught.value.result) == 0 and caught.value.result.counts["legal"] > 0
    roomy = orrery.plan("gpt2", "dgx-h100:1", top=1, progress=False, max_seconds=1e300, max_memory=2**63, max_events=2**63, **OPTIONS)
    assert [p.step_s for p in roomy] == [p.step_s for p in whole] and roomy.counts == whole.counts
    for wrong in ({"max_seconds": -1}, {"max_seconds": float("nan")}, {"max_events": -1}, {"max_events": 2**64},
                  {"max_memory": "much"}, {"max_memory": -1}):
        with pytest.raises((orrery.Error, OverflowError)):
            orrery.plan("gpt2", "dgx-h100:1", progress=False, **wrong, **OPTIONS)


def test_wrong_searches_raise():
    for options, words in (({"goal": "fame"}, "goal"), ({"fix": {"nothing": 1}}, "nothing")):
        with pytest.raises(orrery.Error, match=words):
            orrery.plan("gpt2", "dgx-h100:1", **options)
    with pytest.raises(orrery.Error, match="no-such"):
        orrery.plan("gpt2", "no-such-machine")
    with pytest.raises(orrery.Error, match="no-such"):
        orrery.plan("no-such-model", "dgx-h100:1")


def test_a_callback_that_raises_ends_the_search():
    class Enough(Exception):
        pass

    def progress(counts):
        raise Enough
    with pytest.raises(Enough):
        orrery.plan("llama-3-70b", "dgx-h100:16", batch=512, no_prune=True, progress=progress)
