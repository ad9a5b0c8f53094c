"""A model writes the conditions: beside LlamaIndex's own auto-retriever, on the same nodes."""

import asyncio
import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest
from llama_index.core import PromptTemplate, Settings, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import VectorIndexAutoRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    MetadataInfo,
    VectorStoreInfo,
)
from llama_index_models import Words

from nodekin.adapters.llama_index import NodeGraphAutoRetriever, NodeGraphIndex, NodeGraphRetriever
from nodekin.retrievers import QueryRewriteRetriever, as_retriever, restrict

FILMS: dict[str, dict[str, Any]] = {
    "Dinosaurs break out.": {"year": 1993, "genre": "action", "tags": ["park", "sea"]},
    "Thieves enter dreams.": {"year": 2010, "director": "Nolan", "rating": 8.2, "tags": []},
    "A dream machine is stolen.": {"year": 2006, "director": "Kon", "rating": 8.6, "genre": ""},
    "Toys come alive.": {"year": 1995, "genre": "animated", "director": "the nolan", "seen": True},
    "Three men walk into a zone.": {"year": 1979, "rating": 9.9, "genre": "thriller"},
}

INFO = VectorStoreInfo(
    content_info="Short descriptions of films",
    metadata_info=[
        MetadataInfo(name="year", type="int", description="The year of release"),
        MetadataInfo(name="director", type="str", description="The name of the director"),
        MetadataInfo(name="rating", type="float", description="From 1 to 10"),
        MetadataInfo(name="genre", type="str", description="The genre"),
        MetadataInfo(name="tags", type="list", description="What it is about"),
        MetadataInfo(name="seen", type="bool", description="Whether I have seen it"),
    ],
)

Scripted = Callable[[Any], Any]


def written(query: str, *conditions: tuple[str, str, Any], **fields: Any) -> str:
    """Return the answer of a model."""
    filters = [{"key": key, "operator": op, "value": value} for key, op, value in conditions]
    return f"```json\n{json.dumps({'query': query, 'filters': filters, **fields})}\n```"


def nodes() -> list[TextNode]:
    return [
        TextNode(
            text=text,
            metadata=metadata,
            id_=str(number),
            excluded_embed_metadata_keys=[*metadata],
        )
        for number, (text, metadata) in enumerate(FILMS.items())
    ]


def ids(results: list[NodeWithScore]) -> list[str]:
    return [result.node_id for result in results]


@pytest.fixture(scope="module")
def index() -> NodeGraphIndex:
    return NodeGraphIndex.from_nodes(nodes(), embed_model=Words(), similarity="cosine")


@pytest.fixture(scope="module")
def vector_index() -> VectorStoreIndex:
    return VectorStoreIndex(nodes(), embed_model=Words())


IN_014 = version("llama-index-core") >= "0.14"
"""In 0.13 an answer that can't be read is an error."""

in_014 = pytest.mark.skipif(
    not IN_014,
    reason="the store of LlamaIndex 0.13 takes no value that is missing for one that differs",
)

CONDITIONS = [
    *[("year", name, 1995) for name in ("==", "!=", ">", ">=", "<", "<=")],
    ("year", "in", [1993, 2010]),
    ("director", "nin", ["Kon"]),
    ("tags", "any", ["park", "x"]),
    ("tags", "all", ["park", "sea"]),
    ("tags", "contains", "sea"),
    ("director", "text_match", "Nolan"),
    ("director", "text_match_insensitive", "nolan"),
    ("genre", "is_empty", None),
]


def test_all_operators_are_among_the_conditions() -> None:
    assert {name for _, name, _ in CONDITIONS} == {operator.value for operator in FilterOperator}


@in_014
@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_what_a_model_writes_finds_what_llama_indexes_own_finds(
    index: NodeGraphIndex, vector_index: VectorStoreIndex, scripted: Scripted, condition: Any
) -> None:
    answer = written("a dream is stolen", condition)
    settings: dict[str, Any] = {"similarity_top_k": 5, "max_top_k": 5}
    models = [scripted(answer), scripted(answer)]
    theirs = VectorIndexAutoRetriever(vector_index, INFO, models[0], **settings)
    ours = NodeGraphAutoRetriever(index, INFO, models[1], **settings)
    question = "Which film has a stolen dream?"
    expected = theirs.retrieve(question)
    results = ours.retrieve(question)
    assert {result.node_id: pytest.approx(result.score, abs=1e-5) for result in expected} == {
        result.node_id: result.score for result in results
    }
    assert models[0].prompts == models[1].prompts  # the model reads the same
    assert ids(asyncio.run(ours.aretrieve(question))) == ids(results)


@pytest.mark.parametrize(
    ("top_k", "limits", "count"),
    [
        (None, {}, 5),
        (2, {}, 2),
        (2, {"similarity_top_k": 3}, 2),
        (4, {"similarity_top_k": 3}, 3),
        (5, {"similarity_top_k": 5, "max_top_k": 4}, 4),
        (5, {"max_top_k": 1}, 1),
        (0, {"similarity_top_k": 3}, 3),  # nonsense of the model
    ],
)
def test_the_number_of_results(
    index: NodeGraphIndex, scripted: Scripted, top_k: int, limits: Any, count: int
) -> None:
    model = scripted(written("a dream", top_k=top_k))
    ours = NodeGraphAutoRetriever(index.as_retriever(similarity_top_k=5), INFO, model, **limits)
    assert len(ours.retrieve("dreams")) == count


def test_a_blank_query_lists_what_meets_the_conditions(
    index: NodeGraphIndex, vector_index: VectorStoreIndex, scripted: Scripted
) -> None:
    model = scripted(written("", ("year", "<", 2000)))
    theirs = VectorIndexAutoRetriever(
        vector_index, INFO, model, similarity_top_k=1, default_empty_query_vector=[1.0] * 128
    )  # without this vector it fails
    ours = NodeGraphAutoRetriever(index, INFO, model, similarity_top_k=1)
    assert ids(ours.retrieve("All old films")) == ["0", "3", "4"]
    assert sorted(ids(theirs.retrieve("All old films"))) == ["0", "3", "4"]
    few = NodeGraphAutoRetriever(index, INFO, model, similarity_top_k=1, empty_query_top_k=None)
    assert ids(few.retrieve("All old films")) == ["0"]


@pytest.mark.parametrize("query", ["", " ", "films"])
def test_conditions_of_all_owners_hold(
    index: NodeGraphIndex, scripted: Scripted, query: str
) -> None:
    """The model can narrow what the others allow; it can't get out, by the same field neither."""
    recent = index.as_retriever(filters={"year": {"gt": 1980}}, similarity_top_k=5)
    extra = MetadataFilters(
        filters=[MetadataFilter(key="year", value=2000, operator=FilterOperator.LT)]
    )

    def found(*conditions: Any, search: Any = recent, extra_filters: Any = extra) -> list[str]:
        model = scripted(written(query, *conditions))
        ours = NodeGraphAutoRetriever(search, INFO, model, extra_filters=extra_filters)
        assert sorted(ids(asyncio.run(ours.aretrieve("films")))) == sorted(
            ids(ours.retrieve("films"))
        )
        return sorted(ids(ours.retrieve("films")))

    assert found() == ["0", "3"]
    assert found(("year", ">", 0)) == ["0", "3"]
    assert found(("year", "in", [1979, 1995, 2010])) == ["3"]
    assert found(("year", "==", 1979)) == found(("year", "==", 2010)) == []
    either = MetadataFilters(
        filters=[
            MetadataFilter(key="director", value="Kon"),
            MetadataFilter(key="genre", value="action"),
        ],
        condition="or",
    )  # LlamaIndex's own can't have these
    assert found(("year", ">", 1979), extra_filters=either) == ["0", "2"]
    assert found(extra_filters={"rating": {"exists": True}}) == ["1", "2"]
    tenant = restrict(as_retriever(recent), {"genre": "animated"})
    assert found(("year", ">", 0), search=tenant) == ["3"]
    assert found(("genre", "==", "action"), search=tenant) == []


def test_values_become_those_of_the_declared_types(
    index: NodeGraphIndex, vector_index: VectorStoreIndex, scripted: Scripted
) -> None:
    """LlamaIndex's own prompt shows the model a year as a text; its own store then fails."""

    def found(*conditions: Any) -> list[str]:
        model = scripted(written("film", *conditions))
        return sorted(ids(NodeGraphAutoRetriever(index, INFO, model).retrieve("films")))

    assert found(("year", "==", "1995")) == found(("year", "in", ["1995", "1"])) == ["3"]
    assert found(("year", ">", "2000")) == ["1", "2"]
    assert found(("rating", ">=", "8.6")) == ["2", "4"]
    assert found(("seen", "==", True)) == found(("seen", "==", "yes")) == ["3"]
    assert found(("seen", "==", False)) == []
    with pytest.raises(ValueError, match="the model's condition on 'year': 'many' is no int"):
        found(("year", "==", "many"))
    with pytest.raises(ValueError, match="use the operator is_empty"):
        found(("year", "==", None))
    with pytest.raises(ValueError, match="on 'years', which vector_store_info does not declare"):
        found(("years", "==", 1995))
    theirs = VectorIndexAutoRetriever(
        vector_index, INFO, scripted(written("film", ("year", ">", "2000")))
    )
    with pytest.raises(TypeError):
        theirs.retrieve("films")


@pytest.mark.parametrize("answer", ["I don't know.", "", "{'query': ", '{"query": "x"}', "[1, 2]"])
def test_an_answer_without_conditions_leaves_the_question(
    index: NodeGraphIndex,
    vector_index: VectorStoreIndex,
    scripted: Scripted,
    caplog: pytest.LogCaptureFixture,
    answer: str,
) -> None:
    theirs = VectorIndexAutoRetriever(vector_index, INFO, scripted(answer), similarity_top_k=2)
    if not IN_014:
        theirs = vector_index.as_retriever(similarity_top_k=2)
    ours = NodeGraphAutoRetriever(index, INFO, scripted(answer), similarity_top_k=2)
    assert ids(ours.retrieve("A dream machine")) == ids(theirs.retrieve("A dream machine"))
    assert "the model's answer can't be read" in caplog.text
    ours = NodeGraphAutoRetriever(
        index, INFO, scripted(answer), similarity_top_k=5, extra_filters={"year": {"lt": 2000}}
    )
    assert sorted(ids(ours.retrieve("A dream machine"))) == ["0", "3", "4"]


def test_no_query_and_no_condition_leaves_the_question(
    index: NodeGraphIndex, scripted: Scripted
) -> None:
    ours = NodeGraphAutoRetriever(index, INFO, scripted(written("")), similarity_top_k=1)
    assert ids(ours.retrieve("A dream machine is stolen")) == ["2"]


@pytest.mark.parametrize(
    "answer",
    [
        written("film", ("year", "~", 1995)),
        written("film", ("year", "==", {"from": 1995})),
        written("film", ("year", "==", 1995)).replace("filters", "filter"),
        written("film", ("year", "==", 1995))[:-12],  # cut off
        '{"query": "film", "filters": {"year": 1995}}',
        '{"query": "film", "filters": "year = 1995"}',
        "{query: film, filters: [{key: year",
    ],
)
def test_conditions_that_can_not_be_read_are_never_left_out(
    index: NodeGraphIndex, scripted: Scripted, answer: str
) -> None:
    ours = NodeGraphAutoRetriever(index, INFO, scripted(answer))
    with pytest.raises(ValueError, match="the model's conditions can't be read"):
        ours.retrieve("films of 1995")
    with pytest.raises(ValueError, match="the model's conditions can't be read"):
        asyncio.run(ours.aretrieve("films of 1995"))


def test_an_unknown_operator_is_told_what_there_is(
    index: NodeGraphIndex, scripted: Scripted
) -> None:
    ours = NodeGraphAutoRetriever(index, INFO, scripted(written("film", ("year", "~", 1995))))
    with pytest.raises(ValueError, match=r"operator(.|\n)*'text_match_insensitive'"):
        ours.retrieve("films of 1995")


def test_thoughts_and_words_around_the_answer(index: NodeGraphIndex, scripted: Scripted) -> None:
    answer = written("film", ("year", "==", 1995))
    thinking = f"<think>{{maybe filters: [{{}}]}}</think>Here it is:\n{answer}\nDone."
    assert ids(NodeGraphAutoRetriever(index, INFO, scripted(thinking)).retrieve("1995?")) == ["3"]


def test_events_spans_and_callbacks(
    index: NodeGraphIndex, scripted: Scripted, watched: Any
) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    model = scripted(written("dreams", ("year", ">", 2000)))
    model.callback_manager = manager
    ours = NodeGraphAutoRetriever(index, INFO, model, callback_manager=manager)
    assert len(ours.retrieve("New dreams")) == 2
    kinds = {event.event_type for event in debug.get_events()}
    assert {CBEventType.RETRIEVE, CBEventType.TEMPLATING, CBEventType.FUNCTION_CALL} <= kinds
    assert not watched.spans.open_spans
    names = [span.id_.rpartition("-")[0].split("-")[0] for span in watched.spans.completed_spans]
    assert any(name.startswith("NodeGraphAutoRetriever") for name in names)
    parents = [span.parent_id for span in watched.spans.completed_spans]
    assert parents.count(None) == 1


def test_prompts(index: NodeGraphIndex, scripted: Scripted) -> None:
    model = scripted(written("dreams"))
    rewriting = QueryRewriteRetriever(index, lambda prompt: "toys alive")
    ours = NodeGraphAutoRetriever(rewriting, INFO, model, similarity_top_k=1)
    assert sorted(ours.get_prompts()) == ["prompt", "retriever:rewrite_en", "retriever:rewrite_zh"]
    ours.update_prompts({"prompt": PromptTemplate("{info_str} Question: {query_str}")})
    assert ids(ours.retrieve("Which?")) == ["3"]
    assert model.prompts[0].endswith("Question: Which?")
    assert "The year of release" in model.prompts[0]
    custom = NodeGraphAutoRetriever(index, INFO, model, prompt_template_str="Say: {query_str}")
    custom.retrieve("dreams")
    assert model.prompts[-1] == "Say: dreams"


def test_in_a_query_engine_and_as_a_native_retriever(
    index: NodeGraphIndex, scripted: Scripted
) -> None:
    model = scripted(written("dreams", ("year", ">", 2000)))
    ours = NodeGraphAutoRetriever(index, INFO, model)
    engine = RetrieverQueryEngine.from_args(ours, llm=scripted("Two films."))
    response = engine.query("New dreams?")
    assert sorted(ids(response.source_nodes)) == ["1", "2"]
    assert response.source_nodes[0].evidence[0]["query"] == "dreams"
    native = as_retriever(ours)
    assert len(native.retrieve("New dreams?", top_k=1)) == 1
    assert [r.node.metadata["year"] for r in native.retrieve("?", filters={"year": 2006})] == [2006]
    assert len(NodeGraphRetriever(ours, similarity_top_k=1).retrieve("New dreams?")) == 1


def test_verbose_shows_what_the_model_wrote(
    index: NodeGraphIndex, scripted: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    model = scripted(written("dreams", ("seen", "==", True)))
    NodeGraphAutoRetriever(index, INFO, model, verbose=True).retrieve("Toys I have seen")
    assert "query: 'dreams', filters: {'seen': True}, top_k: None" in capsys.readouterr().out


def test_wrong_arguments(
    index: NodeGraphIndex, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = scripted("")
    for wrong, error, message in (
        ({"max_top_k": 0}, ValueError, "max_top_k"),
        ({"similarity_top_k": 0}, ValueError, "similarity_top_k"),
        ({"empty_query_top_k": "5"}, TypeError, "empty_query_top_k"),
        ({"extra_filters": "year"}, TypeError, "filters map metadata fields"),
        ({"extra_filters": {"year": {"over": 5}}}, ValueError, "operators"),
    ):
        with pytest.raises(error, match=message):
            NodeGraphAutoRetriever(index, INFO, model, **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="vector_store_info is LlamaIndex's VectorStoreInfo"):
        NodeGraphAutoRetriever(index, "films", model)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="llm is LlamaIndex's LLM"):
        NodeGraphAutoRetriever(index, INFO, str)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="retriever"):
        NodeGraphAutoRetriever("films", INFO, model)
    monkeypatch.setattr(Settings, "_llm", model)
    assert ids(NodeGraphAutoRetriever(index, INFO, similarity_top_k=1).retrieve("Toys")) == ["3"]
