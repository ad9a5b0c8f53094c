"""Programs of the usual LangChain tutorials, in LangChain's own form and in nodekin's."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "examples" / "migration"
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
    monkeypatch.syspath_prepend(str(FOLDER))  # as when a script is run
    script = runpy.run_path(str(FOLDER / f"{program}.py"), run_name="__main__")
    assert script["before"]() == script["after"]() == EXPECTED[program]
    theirs, ours = capsys.readouterr().out.splitlines()
    assert theirs.removeprefix("LangChain: ") == ours.removeprefix("nodekin:   ")
