"""Programs of the usual LangChain tutorials, in LangChain's own form and in nodekin's."""

import itertools
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDER = EXAMPLES / "migration"
NEEDS = {
    "langchain_agent": "langchain",
    "langchain_ensemble": "langchain_community",
    "langchain_indexing": "sqlalchemy",
    "langchain_self_query": "lark",
}
EXPECTED = {  # what both forms return, or begins it
    "langchain_agent": [
        (["human", "ai", "tool", "ai"], "Black tea is fermented."),
        (["human", "ai", "tool", "ai"], "The Nile is 6,650 km long."),
    ],
    "langchain_chat": [
        ("Li Chun.", ["bridge.md"]),
        ("Black tea is fermented.", ["tea.md"]),
        ("Coffee is roasted.", ["coffee.md"]),
    ],
    "langchain_compression": [
        ["bridge.md", "coffee.md"], ["tea.md", "coffee.md"], ["river.md", "coffee.md"],
    ],
    "langchain_ensemble": [["tea.md"], ["river.md"], ["bridge.md"]],
    "langchain_indexing": [
        dict(zip(("num_added", "num_updated", "num_skipped", "num_deleted"), run, strict=True))
        for run in [(4, 0, 0, 0), (0, 0, 4, 0), (1, 0, 3, 1), (0, 0, 3, 1), (0, 0, 0, 3)]
    ],
    "langchain_multi_query": ["coffee.md", "tea.md"],
    "langchain_multi_vector": [
        ["tea.md", "coffee.md", "bridge.md", "river.md"],
        ["coffee.md", "tea.md", "river.md", "bridge.md"],
        ["river.md", "tea.md", "coffee.md", "bridge.md"],
    ],
    "langchain_parent_documents": [
        (
            "tea.md",
            "Green tea is steamed. Black tea is fermented. Both come from leaves of one plant.",
        ),
        ("coffee.md", "Coffee is roasted. It comes from beans, which are seeds of a cherry."),
    ],
    "langchain_rag": ("Black tea is fermented.", [("tea.md", 0), ("coffee.md", 0)]),
    "langchain_rag_fusion": ["coffee.md", "tea.md", "river.md", "bridge.md"],
    "langchain_self_query": [
        ["tea.md"], ["coffee.md", "river.md"], ["bridge.md", "tea.md"], ["bridge.md", "river.md"],
        ["river.md"], ["coffee.md", "river.md", "tea.md"],
    ],
}  # fmt: skip


def test_every_program_is_compared():
    programs = {path.stem for path in FOLDER.glob("langchain_*.py")} - {"langchain_common"}
    assert programs == EXPECTED.keys()


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
@pytest.mark.filterwarnings("ignore:.langchain-community. is being sunset:DeprecationWarning")
@pytest.mark.parametrize("program", EXPECTED)
def test_both_forms_return_the_same(program, monkeypatch, capsys):
    pytest.importorskip("langchain_classic", reason="the programs need langchain-classic")
    if needed := NEEDS.get(program):
        pytest.importorskip(needed, reason=f"{program} needs {needed}", exc_type=ImportError)
    managers, times = set(), itertools.count(1.0)
    if program == "langchain_indexing":  # LangChain's reads a clock, which may be set back
        manager = "langchain_classic.indexes.SQLRecordManager"
        monkeypatch.setattr(f"{manager}.get_time", lambda self: managers.add(self) or next(times))
    monkeypatch.syspath_prepend(str(FOLDER))  # as when a script is run
    script = runpy.run_path(str(FOLDER / f"{program}.py"), run_name="__main__")
    assert script["before"]() == script["after"]() == EXPECTED[program]
    for manager in managers:
        manager.engine.dispose()  # a connection that nobody closes is a warning of Python 3.13
    theirs, ours = capsys.readouterr().out.splitlines()
    assert theirs.removeprefix("LangChain: ") == ours.removeprefix("nodekin:   ")


def test_the_agent_searches_reads_and_cites(capsys):
    pytest.importorskip("langgraph", reason="the agent example needs langgraph")
    runpy.run_path(str(EXAMPLES / "langchain_agent.py"), run_name="__main__")
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


def test_it_runs_and_says_what_happened(capsys):
    runpy.run_path(str(EXAMPLES / "langchain_index.py"), run_name="__main__")
    shown = capsys.readouterr().out
    added = "{'num_added': 3, 'num_updated': 0, 'num_skipped': 0, 'num_deleted': 0}"
    assert f"full         {added}\n             3 parents, 6 children" in shown
    assert "茶[7:14] = 红茶是发酵的。" in shown
    assert "'num_deleted': 1}\n             3 parents, 5 children" in shown  # the old version went
    assert "tea[0:25] = Oolong is half fermented." in shown
    assert "'num_skipped': 2, 'num_deleted': 1}\n             2 parents, 3 children" in shown
    assert shown.endswith("rivers       []\n")


def test_the_program_of_lazyllm_finds_the_paragraph(capsys):
    script = runpy.run_path(str(FOLDER / "lazyllm_groups.py"), run_name="__main__")
    (paragraph,) = script["after"]()
    assert "李春主持建造" in paragraph
    assert paragraph in capsys.readouterr().out


def test_the_readme_names_every_program():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    shared = {"langchain_common", "llama_index_offline"}
    for program in FOLDER.glob("*.py"):
        assert (f"[{program.name}]({program.name})" in readme) != (program.stem in shared)
