"""What only a running Ray can show. The group keeps it in one test worker, so that it is started once."""

import os
import signal
from functools import partial

import pytest

from recallgym.experiments.reproduce import planned_ablation, run_group
from recallgym.experiments.results import compute
from recallgym.experiments.runner import SweepError, run_jobs
from recallgym.experiments.store import Store

pytestmark = pytest.mark.xdist_group("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    import ray

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def test_a_worker_killed_in_the_middle_of_a_trial_loses_nothing(tmp_path, toy_path, config_dir):
    """The first attempt at the first fit dies half written; the table is nevertheless that of a serial run."""
    planned = planned_ablation("tiny", overrides=[f"env.table={toy_path}"], config_dir=config_dir, quick=True)
    killed = tmp_path / "killed"
    store = Store(tmp_path / "ray")

    def dies_once(trials):
        if not killed.exists():
            killed.touch()
            with store.staged(store.fit_dir(trials[0].fit_hash)) as staging:
                (staging / "policy.pt").write_bytes(b"half")
                os.kill(os.getpid(), signal.SIGKILL)
        run_group(str(store.root), trials)

    run_jobs(planned.groups(store), dies_once, label=lambda trials: trials[0].label, backend="ray")
    assert killed.exists()
    assert planned.groups(store) == []
    assert store.problems() == []

    serial = Store(tmp_path / "serial")
    run_jobs(planned.groups(serial), partial(run_group, str(serial.root)), label=str)
    tables = [compute(planned, finished, "", 0.0) for finished in (store, serial)]
    for table in tables:
        del table["cost"]  # each counts its own seconds
    assert tables[0] == tables[1]


def test_a_job_that_raises_is_reported_with_its_own_error_and_is_not_tried_again(tmp_path):
    def execute(job):
        (tmp_path / f"{job}-{len(list(tmp_path.iterdir()))}").touch()
        if job == 2:
            raise ValueError("two is bad")

    with pytest.raises(SweepError, match=r"1 of 3 jobs failed \(2\).*ValueError: two is bad"):
        run_jobs([1, 2, 3], execute, label=str, backend="ray")
    assert len(list(tmp_path.iterdir())) == 3


def test_workers_compute_on_one_thread(tmp_path):
    def execute(job):
        (tmp_path / "threads").write_text(os.environ.get("OMP_NUM_THREADS", "unset"))

    run_jobs([1], execute, label=str, backend="ray")
    assert (tmp_path / "threads").read_text() == "1"
