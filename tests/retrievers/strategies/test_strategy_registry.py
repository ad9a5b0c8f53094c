"""The table of strategies by name."""

import inspect
import pydoc
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from nodekin.retrievers import Retriever
from nodekin.retrievers.base_retriever import BaseRetriever
from nodekin.retrievers.strategies.router import QueryRouter, RouterRetriever
from nodekin.retrievers.strategies.strategy_registry import (
    STRATEGIES,
    StrategyName,
    TransformName,
    make_strategy,
    make_transform,
)
from nodekin.retrievers.strategies.transform_retriever import TransformRetriever


def test_literal_names_equal_the_table() -> None:
    assert get_args(StrategyName) == tuple(STRATEGIES)
    transforms = [s.transform for s in STRATEGIES.values()]
    assert set(get_args(TransformName)) == {t.name for t in transforms if t is not None}


@pytest.mark.parametrize("name", STRATEGIES)
def test_documentation_lists_each_strategy(name: str) -> None:
    page = Path(__file__).parents[3] / "docs" / "strategies.md"
    (row,) = re.findall(rf"^\|.*\| `{name}` \|.*$", page.read_text(encoding="utf-8"), re.M)
    assert f"`{STRATEGIES[name].retriever.__name__}`" in row


def test_table_contains_all_strategy_retrievers() -> None:
    def subclasses(cls: type) -> set[type]:
        return {cls} | {below for sub in cls.__subclasses__() for below in subclasses(sub)}

    others = {BaseRetriever, TransformRetriever, RouterRetriever}  # a router needs routes
    built_in = {
        cls for cls in subclasses(BaseRetriever) if ".retrievers.strategies" in cls.__module__
    }
    assert built_in - others == {strategy.retriever for strategy in STRATEGIES.values()}


@pytest.mark.parametrize("name", STRATEGIES)
def test_make_strategy_creates_each_strategy(name: Any, plain: Retriever, scripted: Any) -> None:
    retriever = make_strategy(name, plain, scripted("How long is the Nile?"), top_k=1)
    assert type(retriever) is STRATEGIES[name].retriever
    assert [result.node.id for result in retriever.retrieve("Nile long")] == ["nile"]


CLASSES = [
    *(strategy.retriever for strategy in STRATEGIES.values()),
    *(strategy.transform for strategy in STRATEGIES.values() if strategy.transform),
    RouterRetriever,
    QueryRouter,
]


@pytest.mark.parametrize("cls", CLASSES)
def test_help_shows_all_options_with_types(cls: type) -> None:
    parameters = inspect.signature(cls).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert {"prompt", "language", "retries", "timeout", "on_error"} <= parameters.keys()
    shown = pydoc.render_doc(cls, renderer=pydoc.plaintext)
    for parameter in parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty
        assert f"{parameter.name}: {parameter.annotation}" in shown.replace("'", "")


def test_unknown_names_and_options_raise(plain: Retriever) -> None:
    with pytest.raises(ValueError, match="unknown strategy 'multistep'; known: 'multi_step'"):
        make_strategy("multistep", plain, str.upper)
    with pytest.raises(ValueError, match="unknown strategy 'router'"):  # it needs routes
        make_strategy("router", plain, str.upper)
    with pytest.raises(ValueError, match="unknown query transform 'expnd'; known: 'expand'"):
        make_transform("expnd", str.upper)
    with pytest.raises(TypeError, match="cuont"):
        make_strategy("multi_query", plain, str.upper, cuont=3)
    with pytest.raises(TypeError, match="cuont"):
        make_transform("expand", str.upper, cuont=3)
