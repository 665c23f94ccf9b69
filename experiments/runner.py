"""Runs jobs one after another, or as Ray Core tasks, with progress and an estimate of the time left.

A job is anything that can be pickled, and its result goes to the trial store, so a sweep that is interrupted or loses a
worker continues from what is stored. Ray Core rather than Tune: Tune adds over a second to every trial.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TextIO, TypeVar

BACKENDS = ("serial", "ray")
RETRIES = 3  # times that Ray starts a task again whose worker died
LINE_SECONDS = 5.0  # a log gets a progress line at most this often

J = TypeVar("J")


class Report(Protocol):
    """Told of every finished job."""

    def __call__(self, label: str, failed: bool) -> None:
        """Counts a job as finished."""


class SweepError(RuntimeError):
    """Some jobs failed; the others are finished and stored."""


@dataclass(frozen=True)
class Failure(Generic[J]):
    """A job that raised, or whose worker died more often than Ray tries again."""

    job: J
    error: BaseException


def run_jobs(
    jobs: Sequence[J],
    execute: Callable[[J], object],
    *,
    label: Callable[[J], str],
    backend: str = "serial",
    workers: int = 1,
    address: str | None = None,
    report: Report | None = None,
) -> None:
    """Executes every job, whatever becomes of the others.

    Args:
        jobs: The jobs.
        execute: Does one job; on Ray it runs in a worker, so it must be importable there or self-contained.
        label: A job's name in messages.
        backend: ``serial`` or ``ray``.
        workers: Ray tasks that run at a time, where this call starts Ray; one CPU each.
        address: A running Ray cluster to use, with this package installed on its machines: workers import it, and no
            working directory is shipped. None starts Ray on this machine, unless it is started already.
        report: Told of each job as it finishes.

    Raises:
        SweepError: Jobs failed; the message names them and the first error.
        ValueError: The backend is unknown.
    """
    if backend not in BACKENDS:
        raise ValueError(f"run.backend must be one of {', '.join(BACKENDS)}; got {backend!r}")
    finished = _serial(jobs, execute) if backend == "serial" else _ray(jobs, execute, workers, address)
    failures = []
    for job, error in finished:
        if error is not None:
            failures.append(Failure(job, error))
        if report is not None:
            report(label(job), error is not None)
    if failures:
        first = failures[0]
        names = ", ".join(label(failure.job) for failure in failures[:5]) + (", ..." if len(failures) > 5 else "")
        raise SweepError(
            f"{len(failures)} of {len(jobs)} jobs failed ({names}); the others are stored, and repeating the command "
            f"runs only these. The first failed with {type(first.error).__name__}: {first.error}"
        ) from first.error


def _serial(jobs: Sequence[J], execute: Callable[[J], object]) -> Iterator[tuple[J, Exception | None]]:
    for job in jobs:
        try:
            execute(job)
        except Exception as error:
            yield job, error
        else:
            yield job, None


def _ray(
    jobs: Sequence[J], execute: Callable[[J], object], workers: int, address: str | None
) -> Iterator[tuple[J, Exception | None]]:
    import ray

    with _started(workers, address):
        # One CPU a task makes Ray set OMP_NUM_THREADS=1 in its worker. ``execute`` is shipped once, not with each job.
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_discard_result)
        shipped = ray.put(execute)
        capacity = 2 * max(1, int(ray.cluster_resources().get("CPU", workers)))  # the next job is there when one ends
        todo = list(reversed(jobs))
        running: dict[Any, J] = {}
        try:
            while todo or running:
                while todo and len(running) < capacity:
                    job = todo.pop()
                    running[task.remote(shipped, job)] = job
                done, _ = ray.wait(list(running), num_returns=1)
                job = running.pop(done[0])
                try:
                    ray.get(done[0])
                except ray.exceptions.RayTaskError as error:
                    yield job, error.cause  # what the job raised
                except ray.exceptions.RayError as error:
                    yield job, error
                else:
                    yield job, None
        finally:
            for reference in running:
                ray.cancel(reference, force=True)


def _discard_result(execute: Callable[[Any], object], job: Any) -> None:
    execute(job)


@contextmanager
def _started(workers: int, address: str | None) -> Iterator[None]:
    import ray

    if ray.is_initialized():
        yield
        return
    settings: dict[str, Any] = {"address": address} if address else {"num_cpus": workers, "include_dashboard": False}
    ray.init(log_to_driver=False, logging_level="ERROR", **settings)
    try:
        yield
    finally:
        ray.shutdown()


class Progress:
    """Prints how far a sweep is: a bar on a terminal, a line now and then in a log.

    Args:
        total: Number of jobs.
        stream: Where to; standard error by default, so that results can be piped.
    """

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self.total = total
        self.done = 0
        self.failed = 0
        self.stream = stream or sys.stderr
        self._begun = time.monotonic()
        self._printed = float("-inf")

    def __call__(self, label: str, failed: bool) -> None:
        """Counts a job as finished and shows it."""
        self.done += 1
        self.failed += failed
        now, terminal = time.monotonic(), self.stream.isatty()
        if terminal or failed or self.done == self.total or now - self._printed >= LINE_SECONDS:
            self._printed = now
            line = self.line(now - self._begun, label)
            end = "\n" if not terminal or self.done == self.total else ""
            self.stream.write(f"\r\x1b[K{line}{end}" if terminal else f"{line}{end}")
            self.stream.flush()

    def line(self, elapsed: float, label: str) -> str:
        """Returns the line shown after ``elapsed`` seconds."""
        left = elapsed / self.done * (self.total - self.done)
        share = self.done / self.total
        filled = int(20 * share)
        failures = f", {self.failed} failed" if self.failed else ""
        return (
            f"[{'#' * filled}{'.' * (20 - filled)}] {self.done}/{self.total}{failures}, {clock(elapsed)} elapsed, "
            f"about {clock(left)} left: {label}"
        )


def clock(seconds: float) -> str:
    """Returns a duration as h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
