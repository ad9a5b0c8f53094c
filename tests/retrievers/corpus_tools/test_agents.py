"""Scripted agents read all gold passages with few tokens, as in the benchmark.

The tests use the first questions of each set, and all questions with ``make stress``.
"""

import runpy
from pathlib import Path

import pytest
from support.stress import LONG

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"

pytestmark = [pytest.mark.data, pytest.mark.slow]


def test_agents_find_gold_with_fewer_tokens(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("musique", "hotpotqa", "cmrc2018"):
        if not (data / name).is_dir():
            pytest.skip(f"no {data / name}")
    monkeypatch.syspath_prepend(BENCHMARKS)
    agent_rows = runpy.run_path(str(BENCHMARKS / "strategies.py"))["agent_rows"]
    figures = {
        (row[0], row[1]): [float(cell.replace(",", "")) for cell in row[2:]]
        for row in agent_rows(data, 80, 10, None if LONG else 40)
        if len(row) == 8 and row[2][:1].isdigit()
    }
    for name, most in (
        ("MuSiQue", 0.80),
        ("HotpotQA", 0.90),
        ("CMRC 2018, places of answers", 0.99),
    ):
        assert figures[name, "agent, search and read"][0] >= most
        if name != "HotpotQA":  # which has no answers of steps
            assert figures[name, "agent that knows no gold: answers"][0] >= 0.90
        for first in (5, 6, 10):
            assert figures[name, f"top_k={first}"][-1] >= 1.3
