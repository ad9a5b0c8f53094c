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
        (pandas, "大熊猫每天要花多少时间吃东西？", "animals.md[112:152]", "大熊猫的学名"),
        (tea, "《茶经》是谁写的？", "tea.md[42:68]", "陆羽生活在唐代"),
    ):
        assert f"human  {question}\nai     {{'query': '{question}'}}\ntool   [1]\n" in shown
        assert place in shown.partition("[1] ")[2].splitlines()[0]
        assert f"\nai     My notes say: {answer}" in shown
