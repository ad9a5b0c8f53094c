"""Processes and threads change one graph randomly. The result equals a rebuilt graph."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from support.stress import Tally, amount

TESTS = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "support.writing_process"]
ROUNDS = amount(3, 1_000)


def told(processes: list[subprocess.Popen[str]], line: str) -> list[str]:
    """Give processes a line; return their answers, when all have answered."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
    return [process.stdout.readline().strip() for process in processes if process.stdout]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "threads"), [(2, 2), (3, 1)])
def test_writing_processes_leave_graph_equal_to_rebuilt_graph(
    tmp_path: Path, count: int, threads: int
) -> None:
    start = int(os.environ.get("NODEKIN_SEED") or random.randrange(10**6))
    tally = Tally(f"rounds of {count} processes of {threads} threads, NODEKIN_SEED={start}")
    processes = [
        subprocess.Popen(
            [*COMMAND, str(tmp_path / "graph"), f"p{n}t", str(threads), "12"],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(count)
    ]
    try:
        for number in range(ROUNDS):
            with tally.trying(f"seed {start}, round {number}"):
                answers = told(processes, f"work {start}-{number}")
                for process in processes:  # sequentially, so that no process writes during a check
                    answers += told([process], "check")
                wrong = [answer for answer in answers if answer != "ok"]
                assert not wrong, wrong[0]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    tally.check()
