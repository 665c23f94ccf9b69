import io

import pytest

from recallgym.experiments.runner import Progress, SweepError, clock, run_jobs


def test_serial_runs_every_job_in_order():
    done = []
    run_jobs([3, 1, 2], done.append, label=str)
    assert done == [3, 1, 2]


def test_a_failing_job_does_not_stop_the_others_and_is_named_at_the_end():
    done, reported = [], []

    def execute(job):
        if job == 2:
            raise ValueError("two is bad")
        done.append(job)

    with pytest.raises(SweepError, match=r"1 of 3 jobs failed \(job 2\).*ValueError: two is bad") as caught:
        run_jobs(
            [1, 2, 3],
            execute,
            label=lambda job: f"job {job}",
            report=lambda label, failed: reported.append((label, failed)),
        )
    assert done == [1, 3]
    assert reported == [("job 1", False), ("job 2", True), ("job 3", False)]
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_interrupt_stops_at_once():
    done = []

    def execute(job):
        if job == 2:
            raise KeyboardInterrupt
        done.append(job)

    with pytest.raises(KeyboardInterrupt):
        run_jobs([1, 2, 3], execute, label=str)
    assert done == [1]


def test_an_unknown_backend_names_those_there_are():
    with pytest.raises(ValueError, match="serial, ray; got 'slurm'"):
        run_jobs([1], print, label=str, backend="slurm")


def test_progress_in_a_log_is_a_line_now_and_then_and_one_at_the_end():
    stream = io.StringIO()
    progress = Progress(50, stream)
    for i in range(50):
        progress(f"trial {i}", failed=False)
    lines = stream.getvalue().splitlines()
    assert 2 <= len(lines) < 10
    assert lines[-1].startswith("[####################] 50/50,")
    assert "trial 49" in lines[-1]


def test_progress_on_a_terminal_rewrites_one_line():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    progress = Progress(3, stream)
    for i in range(3):
        progress(f"trial {i}", failed=i == 1)
    assert stream.getvalue().count("\r") == 3
    assert stream.getvalue().count("\n") == 1
    assert "1 failed" in stream.getvalue()


def test_progress_estimates_the_time_left():
    progress = Progress(4, io.StringIO())
    progress.done = 1
    assert "about 3:00 left" in progress.line(elapsed=60.0, label="x")


def test_a_clock_has_hours_only_where_needed():
    assert [clock(s) for s in (0, 61, 3600 + 62)] == ["0:00", "1:01", "1:01:02"]
