"""Fixtures of the strategies' tests: a small corpus, and models that do as they are told."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from nodekin.nodegraph import Document, Embedder, NodeGraph
from nodekin.retrievers import Retriever

Scripted = Callable[..., Any]


class Model:
    """Answer the first script whose key is in the prompt; keep the prompts."""

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
    """The same, held to a schema: what it is told to answer then stands in ``values``."""

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
    """Make a model: ``scripted("always this")`` or ``scripted({"in the prompt": "this"})``."""

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


@pytest.fixture
def vectors() -> Callable[[list[str]], Any]:
    """Embed texts by how often a few words are in them."""

    def embed(texts: list[str]) -> Any:
        words = ("tea", "nile", "drink")
        return np.array(
            [[text.lower().count(word) for word in words] + [0.01] for text in texts], np.float32
        )

    return embed


@pytest.fixture
def embedded(vectors: Callable[[list[str]], Any]) -> Retriever:
    graph = NodeGraph(embed=Embedder(vectors, name="words"), progress=False)
    graph.add(["Tea.", "The Nile.", "Drink tea.", "A drink by the Nile."])
    return Retriever(graph, "ROOT", "cosine", top_k=4)
