"""An agent that searches by itself."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "langchain_agent.py"


def test_the_agent_searches_reads_and_cites(capsys):
    pytest.importorskip("langgraph", reason="the agent example needs langgraph")
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    pandas, tea = capsys.readouterr().out.strip().split("\n\n")
    for shown, question, place, answer in (
        (pandas, "大熊猫每天要花多少时间吃东西？", ("zh/animals.md", 0, 252), "十几个小时"),
        (tea, "《茶经》是谁写的？", ("zh/tea.md", 0, 191), "他在8世纪写成的《茶经》"),
    ):
        document, start, end = place
        lines = shown.splitlines()
        assert lines[:2] == [f"human  {question}", f"ai     {{'query': '{question}'}}"]
        assert lines[2].startswith(f"tool   {document} [{start}:{end}]")
        read = f"ai     {{'document': '{document}', 'start': {start}, 'end': {end}}}"
        assert read in lines
        assert f"       {document} {start}-" in shown.partition(read)[2]
        assert lines[-1].startswith("ai     My notes say: ")
        assert answer in lines[-1]
        assert lines[-1].endswith(f"({document} [{start}:{end}])")
