"""Types, ranges and values of metadata fields."""

from typing import Any

import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import FilterField, FusionRetriever, Retriever, SelfQueryRetriever
from nodekin.retrievers.strategies.filter_field import MAX_VALUES, field_of
from nodekin.retrievers.strategies.metadata_fields import read_fields, sources_of


def test_fields_of_several_graphs_are_joined() -> None:
    graphs = []
    for year in (1999, 2020):
        graph = NodeGraph(progress=False)
        graph.add(Document("Tea.", {"year": year, "kind": f"k{year}", "mixed": year, "many": "0"}))
        graphs.append(graph)
    graphs[1].add([Document("Tea.", {"many": str(number)}) for number in range(MAX_VALUES + 1)])
    graphs[1].add(Document("Tea.", {"mixed": "a"}))
    fusion = FusionRetriever([Retriever(graph, "ROOT") for graph in graphs])
    fields = read_fields(sources_of(fusion, None))
    assert fields["year"] == FilterField("number", minimum=1999, maximum=2020)
    assert fields["kind"] == FilterField("text", values=("k1999", "k2020"), is_complete=True)
    assert fields["mixed"].type == "any"
    assert not fields["many"].is_complete
    assert len(fields["many"].values) == MAX_VALUES


def test_documents_are_read_once_per_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    from nodekin.retrievers.strategies import metadata_fields

    graph = NodeGraph(progress=False)
    graph.add([Document(f"Tea {n}.", {"year": n}) for n in range(5)])
    reads: list[Any] = []

    def counted(values: Any) -> FilterField | None:
        reads.append(values)
        return field_of(values)

    monkeypatch.setattr(metadata_fields, "field_of", counted)
    retriever = SelfQueryRetriever(Retriever(graph, "ROOT"), lambda prompt: "{}")
    for _ in range(3):
        retriever.retrieve("tea")
    assert len(reads) == 1
    retriever.retrieve("tea", filters={"year": {"lt": 3}})
    assert reads[1:] == [[0, 1, 2]]
    graph.add(Document("More tea.", {"year": 9}))
    retriever.retrieve("tea")
    assert len(reads) == 3
