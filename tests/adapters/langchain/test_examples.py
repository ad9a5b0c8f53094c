"""Programs of the usual LangChain tutorials, in LangChain's own form and in nodekin's."""

import itertools
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
FOLDER = EXAMPLES / "migration"
NEEDS = {
    "langchain_agent": "langchain",
    "langchain_faiss": "faiss",
    "langchain_ensemble": "langchain_community",
    "langchain_indexing": "sqlalchemy",
    "langchain_self_query": "lark",
}
EXPECTED = {  # the results of both forms
    "langchain_agent": (["human", "ai", "tool", "ai"], "The Nile is 6,650 km long."),
    "langchain_chain": ("Black tea is fermented.", "Black tea is fermented.", True),
    "langchain_compression": [
        ["bridge.md", "coffee.md"], ["tea.md", "coffee.md"], ["river.md", "coffee.md"],
    ],
    "langchain_configurable": [["tea.md"], ["tea.md", "bridge.md"]],
    "langchain_ensemble": [["tea.md"], ["river.md"], ["bridge.md"]],
    "langchain_faiss": (
        True,
        "。红茶和绿茶的区别在于发酵。咖啡要烘焙。河流入海。赵州桥是石拱桥，李春主持建造。",
        ["发酵。\nScore: 90"] * 3 + ["发酵。"],
    ),
    "langchain_fallbacks": (["tea.md"], True),
    "langchain_indexing": [
        dict(zip(("num_added", "num_updated", "num_skipped", "num_deleted"), run, strict=True))
        for run in [(4, 0, 0, 0), (0, 0, 4, 0), (1, 0, 3, 1), (0, 0, 3, 1), (0, 0, 0, 3)]
    ],
    "langchain_multi_query": ["coffee.md", "tea.md"],
    "langchain_parent_documents": [
        (
            "tea.md",
            "Green tea is steamed. Black tea is fermented. Both come from leaves of one plant.",
        ),
        ("coffee.md", "Coffee is roasted. It comes from beans, which are seeds of a cherry."),
    ],
    "langchain_self_query": [["tea.md"], ["bridge.md", "tea.md"], ["bridge.md", "river.md"]],
}  # fmt: skip


def test_every_example_is_short_and_compared():
    programs = {path.stem: path for path in FOLDER.glob("langchain_*.py")}
    del programs["langchain_common"]
    assert programs.keys() == EXPECTED.keys()
    for path in programs.values():
        assert len(path.read_text("utf-8").splitlines()) <= 40


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
@pytest.mark.filterwarnings("ignore:.langchain-community. is being sunset:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The apply_and_parse method")  # of map_rerank
@pytest.mark.parametrize("program", EXPECTED)
def test_both_forms_print_equal_results(program, monkeypatch, capsys):
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
        manager.engine.dispose()  # Python 3.13 warns of unclosed connections
    theirs, ours = capsys.readouterr().out.splitlines()
    assert theirs.removeprefix("LangChain: ") == ours.removeprefix("nodekin:   ")


def test_agent_example_searches_reads_and_cites(capsys):
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


def test_lazyllm_example_finds_the_paragraph(capsys):
    script = runpy.run_path(str(FOLDER / "lazyllm_groups.py"), run_name="__main__")
    (paragraph,) = script["after"]()
    assert "李春主持建造" in paragraph
    assert paragraph in capsys.readouterr().out


def test_readme_names_every_example():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    shared = {"langchain_common", "llama_index_offline"}
    for program in FOLDER.glob("*.py"):
        assert (f"[{program.name}]({program.name})" in readme) != (program.stem in shared)


@pytest.mark.parametrize("form", ["before", "after"])
@pytest.mark.parametrize(
    ("page", "program"),
    [
        ("parent_document_retriever", "langchain_parent_documents"),
        ("multi_query_retriever", "langchain_multi_query"),
        ("ensemble_retriever", "langchain_ensemble"),
    ],
)
def test_migration_page_shows_the_example(page, program, form):
    text = (EXAMPLES.parent / "docs" / "migration" / f"{page}.md").read_text("utf-8")
    code = (FOLDER / f"{program}.py").read_text("utf-8")
    start = code.index(f"def {form}():")
    assert code[start:].partition("\n\n\n")[0] in text
