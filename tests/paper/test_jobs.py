"""How long jobs are expected to take, where some of them share what takes most of it."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from uqprism.paper.jobs import Job, RunPlan, total
from uqprism.paper.store import Artefact, Bundle, Store


def test_a_plan_leaves_out_what_jobs_share_and_find_already_made(tmp_path: Path) -> None:
    """Two ensembles, each of 100 s, and a job of 4 s on each: what one run made on the way, the next finds."""
    ensembles = [Artefact("bundle", f"ensemble {i}") for i in range(2)]
    first, second = (
        [Job(f"job {i}", Artefact("bundle", f"{run} {i}"), 104.0, each, rest=4.0) for i, each in enumerate(ensembles)]
        for run in ("first", "second")
    )
    store = Store(tmp_path)
    before, after = (RunPlan.of(run, jobs, store, 1) for run, jobs in (("first", first), ("second", second)))
    assert after.seconds_left() == 208.0
    following = after.following([before])
    assert following.seconds_left() == 8.0
    assert total([before, following]) == "all 2 experiments: 4 jobs, 0 done, about 4 min left with 1 process"
    assert after.following([dataclasses.replace(before, refused=True)]).seconds_left() == 208.0
    store.get(ensembles[0], Bundle)
    there = RunPlan.of("second", second, store, 1)
    assert [there.expected(job) for job in there.jobs] == [4.0, 104.0]
    corrected = there.after(second[0], 8.0)
    assert corrected.expected(second[1]) == 104.0  # a job that found its ensemble tells nothing about training one
    assert total([dataclasses.replace(there, refused=True), before]).endswith("with 1 process; 1 would be refused")


def test_a_finished_job_that_took_less_time_than_what_it_shares_did_not_make_it(tmp_path: Path) -> None:
    ensemble, store = Artefact("bundle", "ensemble"), Store(tmp_path)
    job = Job("job", Artefact("bundle", "of it"), 100.0, ensemble, rest=2.0)

    def trained() -> Bundle:
        time.sleep(0.02)
        return Bundle()

    store.get(job.artefact, lambda: store.get(ensemble, trained))
    assert not RunPlan.of("run", [job], store, 1).ready
    other = Job("other", Artefact("bundle", "also of it"), 100.0, ensemble, rest=2.0)
    store.get(other.artefact, lambda: store.get(ensemble))
    assert RunPlan.of("run", [job, other], store, 1).ready == {"other"}


def test_the_longest_job_bounds_the_time_left() -> None:
    jobs = tuple(Job(f"job {i}", Artefact("bundle", i), seconds) for i, seconds in enumerate((60.0, 1.0, 1.0)))
    assert RunPlan("run", jobs, {}, processes=4).seconds_left() == 60.0
