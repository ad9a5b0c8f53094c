import inspect

import pytest

from nodekin.retrievers.evaluation.setups.setup_file import (
    GRAPH_ARGUMENTS,
    GROUP_ARGUMENTS,
    RETRIEVERS,
    TRANSFORMS,
    argument_names,
    takes_graph,
    transform_arguments,
)


@pytest.mark.parametrize("name", RETRIEVERS)
def test_a_retriever_has_its_own_arguments_and_its_typed_options(name):
    cls = RETRIEVERS[name]
    names = argument_names(cls)
    assert "top_k" in names
    assert not {"self", "graph", "output_format", "join"} & {*names}
    required = [
        p.name
        for p in inspect.signature(cls.__init__).parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD and p.name not in ("self", "graph")
    ]
    assert {*required} <= {*names}
    assert takes_graph(cls) or "inner" in names or "retrievers" in names


def test_options_of_a_typed_dictionary_are_arguments():
    assert "child_k" in argument_names(RETRIEVERS["Retriever"])
    assert {"llm", "count", "include_query"} <= {*argument_names(RETRIEVERS["HyDERetriever"])}


def test_transforms_have_the_arguments_of_their_classes():
    assert transform_arguments("SentenceSplitter") == ("chunk_size", "chunk_overlap")
    assert transform_arguments("split_sentences") == ()
    assert all(callable(transform) for transform in TRANSFORMS.values())
    assert GRAPH_ARGUMENTS == ("source", "embed", "store", "on_error", "search_text")
    assert {"parent", "search_text"} <= {*GROUP_ARGUMENTS}
