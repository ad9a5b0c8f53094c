"""Programs of examples/ and of a tutorial, with LlamaIndex's classes and with nodekin's."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Settings, SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import RecursiveRetriever
from llama_index.core.schema import IndexNode
from support.llama_index_models import ScriptedLLM, Words, closed_memories  # noqa: F401

from nodekin.adapters.llama_index import NodeGraphIndex
from nodekin.nodegraph import split_sentences

EXAMPLES = Path(__file__).parents[3] / "examples"
PROGRAMS = sorted(
    path.stem.removeprefix("llama_index_")
    for path in (EXAMPLES / "migration").glob("llama_index_*.py")
    if path.stem != "llama_index_offline"
)


@pytest.fixture(autouse=True)
def no_model_is_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the folder importable, as for a program that is started in it."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "migration"))
    monkeypatch.setattr(Settings, "_llm", None)
    monkeypatch.setattr(Settings, "_embed_model", None)
    yield
    assert Settings._llm is None


def test_there_are_ten_short_programs() -> None:
    assert len(PROGRAMS) == 10
    for name in PROGRAMS:
        text = (EXAMPLES / "migration" / f"llama_index_{name}.py").read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 40, name


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from LlamaIndex's workflows
@pytest.mark.usefixtures("closed_memories")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_with_both_indexes_prints_equal_results(name: str) -> None:
    with redirect_stdout(StringIO()) as printed:
        runpy.run_path(str(EXAMPLES / "migration" / f"llama_index_{name}.py"), run_name="__main__")
    lines = printed.getvalue().splitlines(keepends=True)
    shown = "".join(line for line in lines if not line.startswith("Loading "))  # by version 0.13
    before, after = shown.split("NodeGraphIndex\n")
    assert before.removeprefix("VectorStoreIndex\n") == after != ""


def test_recursive_example_builds_nothing_twice(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "llama_index_recursive.py"), run_name="__main__")
    built, loaded = capsys.readouterr().out.split("built: 40 base nodes, 80 texts told by models\n")
    assert loaded.endswith("loaded: 40 base nodes, 0 texts told by models\n")
    assert loaded.rpartition("loaded:")[0] == built
    assert "大熊猫的学名是Ai… by questions: 国宝大熊猫一天" in built


# The tutorial on recursive retrieval: base nodes, chunk references, metadata references.

FILES = {
    "avengers": "神盾局解散后，复仇者联盟负责搜查九头蛇。奥创是由托尼·斯塔克和布鲁斯·班纳创造的。"
    "奥创来到南非的武器船厂获取所有振金。复仇者们到达后跟他们正面交锋。",
    "tea": "Black tea is fermented. Green tea is steamed. Oolong is half fermented.",
}
QUESTION = "Which tea is fermented, black tea?"


def base_nodes(folder: Path) -> list[Any]:
    for name, text in FILES.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    documents = SimpleDirectoryReader(str(folder)).load_data()
    nodes = splitter(120).get_nodes_from_documents(documents)
    for number, node in enumerate(nodes):
        node.id_ = f"node-{number}"
    return nodes


def splitter(size: int) -> SentenceSplitter:
    return SentenceSplitter(chunk_size=size, chunk_overlap=0, chunking_tokenizer_fn=split_sentences)


def chunk_references(nodes: list[Any]) -> list[Any]:
    references: list[Any] = []
    for base in nodes:
        for size in (80, 100):
            parts = splitter(size).get_nodes_from_documents([base])
            references += [IndexNode.from_text_node(part, base.node_id) for part in parts]
        references.append(IndexNode.from_text_node(base, base.node_id))
    return references


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("references", [chunk_references, list])
@pytest.mark.parametrize("similarity", [None, "cosine"])
def test_tutorial_runs_with_the_class_name_changed(
    references: Any, similarity: str | None, tmp_path: Path
) -> None:
    nodes = base_nodes(tmp_path)
    all_nodes = references(nodes)
    options = {} if similarity is None else {"similarity": similarity}
    outcomes = []
    for index_class, own in ((VectorStoreIndex, {}), (NodeGraphIndex, options)):
        index: Any = index_class(all_nodes, embed_model=Words(texts=[]), **own)
        retriever = RecursiveRetriever(
            "vector",
            retriever_dict={"vector": index.as_retriever(similarity_top_k=2)},
            node_dict={node.node_id: node for node in [*all_nodes, *nodes]},
        )
        llm = ScriptedLLM(answer="Black tea.", prompts=[])
        engine = RetrieverQueryEngine.from_args(retriever, llm=llm)
        response = engine.query(QUESTION)
        (best, *_) = retriever.retrieve(QUESTION)
        assert response.source_nodes[0].node_id == best.node_id
        plain = index.as_query_engine(llm=llm, similarity_top_k=2).retrieve(QUESTION)
        outcomes.append((str(response), best.node_id, best.text, len(plain)))
    assert outcomes[0] == outcomes[1]


# Migration pages


@pytest.mark.parametrize("form", ["before", "after"])
@pytest.mark.parametrize(
    ("page", "program"),
    [
        ("auto_merging_retriever", "auto_merging"),
        ("query_fusion_retriever", "query_fusion"),
        ("sub_question_query_engine", "sub_questions"),
    ],
)
def test_migration_page_shows_the_example(page: str, program: str, form: str) -> None:
    text = (EXAMPLES.parent / "docs" / "migration" / f"{page}.md").read_text("utf-8")
    code = (EXAMPLES / "migration" / f"{program}.py").read_text("utf-8")
    start = code.index(f"def {form}():")
    assert code[start:].partition("\n\n\n")[0] in text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("program", "is_equal"),
    [("auto_merging", False), ("query_fusion", True), ("sub_questions", True)],
)
def test_example_before_and_after_answers(program: str, is_equal: bool) -> None:
    names = runpy.run_path(str(EXAMPLES / "migration" / f"{program}.py"))
    before, after = names["before"](), names["after"]()
    assert before
    assert (before == after) is is_equal
    assert after[0][:20] == before[0][:20]
