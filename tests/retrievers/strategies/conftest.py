"""Fixtures of the strategies' tests: a small corpus and scripted models."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever

Scripted = Callable[..., Any]


class Model:
    """A model with an answer for each key that the prompt may contain. It records prompts."""

    def __init__(self, script: Mapping[str, Any], otherwise: Any) -> None:
        self.script = dict(script)
        self.otherwise = otherwise
        self.prompts: list[str] = []

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        told = next((told for key, told in self.script.items() if key in prompt), self.otherwise)
        if isinstance(told, BaseException):
            raise told
        answer: str = told(prompt) if callable(told) else told
        return answer


class Structured(Model):
    """A scripted model whose answers with a schema are ``values``."""

    def __init__(self, values: Any, otherwise: Any = "") -> None:
        super().__init__({}, otherwise)
        self.values = values
        self.schemas: list[Any] = []

    def complete_json(self, prompt: str, schema: Any) -> Any:
        self.prompts.append(prompt)
        self.schemas.append(schema)
        if isinstance(self.values, BaseException):
            raise self.values
        return self.values


@pytest.fixture
def scripted() -> Scripted:
    """Return a model: ``scripted("always this")`` or ``scripted({"in the prompt": "this"})``."""

    def make(script: Any = "", otherwise: Any = "") -> Model:
        return Model(script, otherwise) if isinstance(script, Mapping) else Model({}, script)

    return make


@pytest.fixture
def structured() -> type[Structured]:
    return Structured


@pytest.fixture
def rivers() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add(
        [
            Document("The Nile is 6,650 km long.", {"lang": "en"}, id="nile"),
            Document("The Amazon is 6,400 km long.", {"lang": "en"}, id="amazon"),
            Document("Tea is a drink.", {"lang": "en"}, id="tea"),
            Document("尼罗河全长6650公里。", {"lang": "zh"}, id="nile-zh"),
            Document("亚马孙河全长6400公里。", {"lang": "zh"}, id="amazon-zh"),
        ]
    )
    return graph


@pytest.fixture
def plain(rivers: NodeGraph) -> Retriever:
    return Retriever(rivers, "ROOT", top_k=3)
