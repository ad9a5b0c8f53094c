"""Settings that ``as_retriever`` overrides."""

from typing import Any

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import as_retriever

TEXTS = [
    "Green tea is steamed.",
    "Green paint dries slowly.",
    "The kettle boils water.",
    "Rivers run to the sea.",
]


def test_as_retriever_sets_options_of_the_default_search() -> None:
    graph = NodeGraph(progress=False)
    graph.add(TEXTS)
    assert as_retriever(graph, min_score=1.0).retrieve("green rivers?") == []
    windows = as_retriever(graph, max_tokens=6).retrieve("green tea")
    assert windows == as_retriever(graph).retrieve("green tea", max_tokens=6)
    required = as_retriever(graph, phrases="required").retrieve('"green tea"')
    assert [result.node.text for result in required] == [TEXTS[0]]


@pytest.mark.parametrize("option", [{"weights": {"words": 1}}, {"phrases": "required"}])
def test_options_of_the_default_search_need_one(option: Any) -> None:
    with pytest.raises(ValueError, match="requires a default search"):
        as_retriever(lambda query: [query], **option)
