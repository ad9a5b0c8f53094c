"""nodekin's transforms in LlamaIndex's ingestion pipelines."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.ingestion import IngestionCache, IngestionPipeline
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.schema import Document, NodeRelationship, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from nodekin.adapters.llama_index import NodeGraphTransform
from nodekin.nodegraph import (
    LLMExtractor,
    Node,
    NodeGraph,
    SentenceSplitter,
    TransformError,
    split_paragraphs,
    split_sentences,
)

TEXT = "Green tea. Black tea.\n\n红茶是茶。水也是。"


@pytest.fixture
def document() -> Document:
    return Document(
        text=TEXT,
        id_="d",
        metadata={"topic": "tea"},
        excluded_llm_metadata_keys=["topic"],
        text_template="<{content}>",
    )


def test_pieces_of_pieces(document: Document) -> None:
    pipeline = IngestionPipeline(
        transformations=[NodeGraphTransform(split_paragraphs), NodeGraphTransform(split_sentences)]
    )
    nodes = pipeline.run(documents=[document])
    assert [n.text for n in nodes] == ["Green tea.", "Black tea.", "红茶是茶。", "水也是。"]
    assert all(TEXT[n.start_char_idx : n.end_char_idx] == n.text for n in nodes)
    assert {n.ref_doc_id for n in nodes} == {"d"}
    assert {type(n) for n in nodes} == {TextNode}
    first, second, third, _ = nodes
    assert first.parent_node.node_id == second.parent_node.node_id != third.parent_node.node_id
    assert first.next_node.node_id == second.node_id
    assert second.prev_node.node_id == first.node_id
    assert second.next_node is None
    assert first.get_content("embed") == "<Green tea.>"
    assert first.get_content("llm") == "Green tea."
    assert first.metadata == {"topic": "tea"}
    assert NodeRelationship.PARENT not in pipeline.transformations[0]([document])[0].relationships


def test_ids_are_the_same_in_every_run(document: Document) -> None:
    runs = [
        IngestionPipeline(transformations=[NodeGraphTransform(split_sentences)]).run(
            documents=[document]
        )
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert len({n.node_id for n in runs[0]}) == 4


def test_what_a_transform_adds() -> None:
    def loud(node: Node) -> list[Node]:
        return [Node(node.text.upper(), {"loud": True, "from": node.metadata["topic"]})]

    given = TextNode(text="tea", id_="t", metadata={"topic": "a"}, start_char_idx=5)
    (made,) = NodeGraphTransform(loud, trans_node=True)([given])
    assert (made.text, made.metadata) == ("TEA", {"topic": "a", "loud": True, "from": "a"})
    assert (made.start_char_idx, made.ref_doc_id) == (None, "t")
    assert given == TextNode(text="tea", id_="t", metadata={"topic": "a"}, start_char_idx=5)
    (piece,) = NodeGraphTransform(str.strip)([given])
    assert (piece.start_char_idx, piece.end_char_idx) == (5, 8)


def test_extraction_by_a_model() -> None:
    asked = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "茶, 水"

    extract = NodeGraphTransform(LLMExtractor(model, task="keywords"))
    made = extract([TextNode(text="茶与水。", id_="t")])
    assert [n.text for n in made]
    assert len(asked) == 1


def test_the_cache_knows_the_rule(document: Document) -> None:
    calls: list[str] = []

    def split(text: str, mark: str = ".") -> list[str]:
        calls.append(text)
        return text.split(mark)

    cache = IngestionCache()
    for transform, count in (
        (NodeGraphTransform(split), 1),
        (NodeGraphTransform(split), 1),
        (NodeGraphTransform(split, mark="。"), 2),
        (NodeGraphTransform(split, version="2"), 3),
    ):
        pipeline = IngestionPipeline(transformations=[transform], cache=cache)
        assert pipeline.run(documents=[document])
        assert len(calls) == count
    hashes = {
        get_transformation_hash([document], NodeGraphTransform(SentenceSplitter(size, 0)))
        for size in (20, 30, 20)
    }
    assert len(hashes) == 2


def test_documents_that_are_known_are_left_out(document: Document) -> None:
    store = SimpleDocumentStore()
    pipeline = IngestionPipeline(
        transformations=[NodeGraphTransform(split_sentences)],
        docstore=store,
        docstore_strategy="duplicates_only",
    )
    assert len(pipeline.run(documents=[document])) == 4
    assert pipeline.run(documents=[document]) == []
    document.set_content("Another text.")
    assert [n.text for n in pipeline.run(documents=[document])] == ["Another text."]


async def test_async_leaves_the_loop_free(document: Document, unblocked: None) -> None:
    pipeline = IngestionPipeline(
        transformations=[NodeGraphTransform(split_sentences)], disable_cache=True
    )
    assert len(await pipeline.arun(documents=[document])) == 4


WORKERS = """
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import Document
from nodekin.adapters.llama_index import NodeGraphTransform
from nodekin.nodegraph import SentenceSplitter, split_sentences
if __name__ == "__main__":
    transforms = [
        NodeGraphTransform(SentenceSplitter, chunk_size=30, chunk_overlap=0),
        NodeGraphTransform(split_sentences),
    ]
    pipeline = IngestionPipeline(transformations=transforms, disable_cache=True)
    documents = [Document(text=f"Tea {at}. 红茶{at}。" * 9, id_=f"d{at}") for at in range(4)]
    alone = pipeline.run(documents=documents)
    together = pipeline.run(documents=documents, num_workers=2)
    assert len(alone) == 72, len(alone)
    assert sorted(n.to_json() for n in alone) == sorted(n.to_json() for n in together)
    print("same")
"""


@pytest.mark.slow
def test_with_workers(tmp_path: Path) -> None:
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.stdout.strip().endswith("same"), done.stderr


def test_pickle() -> None:
    made = pickle.loads(pickle.dumps(NodeGraphTransform(split_sentences)))
    assert [n.text for n in made([TextNode(text="茶。水。")])] == ["茶。", "水。"]
    assert made.rule == NodeGraphTransform(split_sentences).rule
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(NodeGraphTransform(lambda text: text))


def test_what_does_not_travel_is_given_again() -> None:
    transform = NodeGraphTransform(split_sentences)
    made = NodeGraphTransform.from_dict(transform.to_dict())
    assert (made.rule, made.class_name()) == (transform.rule, "NodeGraphTransform")
    with pytest.raises(ValueError, match=r"rebind\(split_sentences\)"):
        made([TextNode(text="a")])
    assert made.rebind(split_sentences)([TextNode(text="a")])


def test_errors() -> None:
    with pytest.raises(TypeError, match="a transform is a callable"):
        NodeGraphTransform(3)
    with pytest.raises(TransformError, match="document 't'"):
        NodeGraphTransform(lambda text: 1 / 0)([TextNode(text="a", id_="t")])


def test_into_a_graph(document: Document) -> None:
    from nodekin.adapters.llama_index import import_nodes

    pipeline = IngestionPipeline(
        transformations=[NodeGraphTransform(split_paragraphs), NodeGraphTransform(split_sentences)]
    )
    paragraphs: Any = pipeline.transformations[0]([document])
    sentences = pipeline.run(documents=[document])
    graph = NodeGraph()
    import_nodes(graph, [*paragraphs, *sentences], documents=[document], groups=["p", "s"])
    assert [n.text for n in graph.nodes("s")] == [n.text for n in sentences]
    assert graph.find("p")(graph.nodes("s")[-1])[0].text == "红茶是茶。水也是。"
