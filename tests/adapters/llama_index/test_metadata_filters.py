from typing import Any

import pytest
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from nodekin.adapters.llama_index import NodeGraphRetriever
from nodekin.adapters.llama_index.metadata_filters import as_filters
from nodekin.retrievers import Retriever


def filters(*conditions: Any, join: str = "and") -> MetadataFilters:
    parts = [
        c if isinstance(c, MetadataFilters) else MetadataFilter(key=c[0], operator=c[1], value=c[2])
        for c in conditions
    ]
    return MetadataFilters(filters=parts, condition=join)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, None),
        ({"topic": ["tea"]}, {"topic": ["tea"]}),
        (filters(), {}),
        (filters(("topic", "==", "tea")), {"topic": "tea"}),
        (filters(("topic", "in", ["tea", "panda"])), {"topic": ["tea", "panda"]}),
        (filters(("year", ">", 1), ("year", "<=", 9)), {"year": {"gt": 1, "lte": 9}}),
        (filters(("a", "==", 1), filters(("b", ">=", 2.5))), {"a": 1, "b": {"gte": 2.5}}),
        (filters(("a", "==", 1), ("a", "in", [2, 3]), join="or"), {"a": [1, 2, 3]}),
        (filters(("a", "<", 1), join="or"), {"a": {"lt": 1}}),
    ],
)
def test_exact_translations(given: Any, wanted: Any) -> None:
    assert as_filters(given) == wanted


@pytest.mark.parametrize(
    "given",
    [
        filters(("topic", "!=", "tea")),
        filters(("topic", "nin", ["tea"])),
        filters(("topic", "contains", "tea")),
        filters(("topic", "text_match", "tea")),
        filters(("topic", "is_empty", None)),
        filters(("topic", "==", None)),
        filters(("topic", "==", ["tea"])),
        filters(("topic", "in", "tea")),
        filters(("a", "==", 1), ("a", "==", 2)),
        filters(("a", ">", 1), ("a", ">", 2)),
        filters(("a", "==", 1), ("b", "==", 2), join="or"),
        filters(("a", ">", 1), ("a", "<", 0), join="or"),
        filters(filters(("a", "==", 1), ("b", "==", 2)), ("a", "==", 3), join="or"),
        filters(("a", "==", 1), join="not"),
    ],
)
def test_no_exact_counterpart(given: Any) -> None:
    with pytest.raises(ValueError, match="no exact counterpart"):
        as_filters(given)


def test_what_is_no_filter() -> None:
    with pytest.raises(TypeError, match="filters map metadata fields"):
        as_filters("topic")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="allows no value"):
        as_filters(filters(("topic", "in", [])))


def test_filters_before_ranking(search: Retriever) -> None:
    def topics(given: Any) -> list[str]:
        found = NodeGraphRetriever(search, filters=given).retrieve("tea 大熊猫")
        return [result.metadata["topic"] for result in found]

    assert set(topics(None)) == {"tea", "panda"}
    assert topics(filters(("topic", "==", "panda"))) == ["panda", "panda"]
    assert topics(filters(("year", "<", 2000), ("year", ">", 1990))) == ["tea", "tea", "tea"]
    assert topics({"year": {"gte": 2000}}) == ["panda", "panda"]
