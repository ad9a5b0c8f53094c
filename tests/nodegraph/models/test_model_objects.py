import functools
import re
import subprocess
import sys
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from llama_index.core import MockEmbedding
from pydantic import BaseModel, SecretStr
from support.embedding_models import (
    Call,
    LangChainAsync,
    LangChainModel,
    LlamaIndexModel,
    Own,
    lengths,
    of_queries,
)

from nodekin.nodegraph import LLM, CachedLLM, Embedder, LLMExtractor, NodeGraph
from nodekin.nodegraph.models.embedder import as_embedder


@dataclass
class Settings:
    model: str = "small"
    dimensions: int = 8
    timeout: float = 1.0
    secret: str = "s"
    client: object = field(default_factory=object)
    asked: list = field(default_factory=list)

    def embed_documents(self, texts):
        return lengths(texts)

    def embed_query(self, text):
        return [1.0]


class Task(Enum):
    QUERY = 1
    PASSAGE = 2


class Pydantic(BaseModel):
    model: str = "small"
    task: Task = Task.PASSAGE
    prompts: dict = {}
    hidden: SecretStr = SecretStr("x")
    request_timeout: float = 3
    max_retries: int = 2

    def embed_documents(self, texts):
        return lengths(texts)

    def embed_query(self, text):
        return [1.0]


class Wrapper:
    def __init__(self, inner):
        self.inner = inner

    def embed_documents(self, texts):
        return self.inner.embed_documents(texts)

    def embed_query(self, text):
        return self.inner.embed_query(text)


class Encoder:
    def encode(self, sentences):
        return lengths(sentences)


def scaled(by):
    return lambda texts: [[len(text), by] for text in texts]


DIFFERENT = {
    "code": lambda: (lengths, of_queries),
    "closures": lambda: (scaled(1), scaled(1)),
    "partials": lambda: (functools.partial(lengths, a=1), functools.partial(lengths, a=2)),
    "methods of": lambda: (Call(1).__call__, Call(2).__call__),
    "methods": lambda: (Own().embed, Own().embed_queries),
    "wrapped methods": lambda: (
        Wrapper(LangChainModel("a").embed_query),
        Wrapper(LangChainModel("b").embed_query),
    ),
    "models": lambda: (LangChainModel("small"), LangChainModel("large")),
    "dimensions": lambda: (LangChainModel(), LangChainModel(dimensions=8)),
    "wrapped models": lambda: (Wrapper(LangChainModel("a")), Wrapper(LangChainModel("b"))),
    "classes": lambda: (LangChainModel(), LangChainAsync()),
    "pydantic": lambda: (Pydantic(), Pydantic(model="large")),
    "enums": lambda: (Pydantic(), Pydantic(task=Task.QUERY)),
    "langchain": lambda: (DeterministicFakeEmbedding(size=8), DeterministicFakeEmbedding(size=9)),
    "llama_index": lambda: (MockEmbedding(8), MockEmbedding(9)),
    "llama_index settings": lambda: (LlamaIndexModel(), LlamaIndexModel(dimensions=3)),
    "arrays": lambda: (Call(np.zeros(3)), Call(np.ones(3))),
    "wrapped functions": lambda: (Wrapper(scaled(1)), Wrapper(scaled(2))),
}


SAME = {
    "keys and addresses": lambda: (LangChainModel(), LangChainModel(api_key="b", base_url="y")),
    "clients and limits": lambda: (Settings(), Settings(timeout=9, secret="t")),
    "what was asked": lambda: (Settings(), Settings(asked=["tea"])),
    "pydantic settings": lambda: (
        Pydantic(),
        Pydantic(hidden=SecretStr("y"), request_timeout=4, max_retries=9),
    ),
    "its key": lambda: (
        LlamaIndexModel(),
        LlamaIndexModel(api_key="k", embed_batch_size=3),
    ),
}


@pytest.mark.parametrize("what", [*DIFFERENT, *SAME])
def test_model_name_depends_on_settings(what):
    one, other = {**DIFFERENT, **SAME}[what]()
    assert (as_embedder(one).name == as_embedder(other).name) == (what in SAME)


def test_model_name_is_readable_without_secrets():
    name = as_embedder(LangChainModel("text-embedding-9", api_key="sk-12345")).name
    assert name.startswith("LangChainModel text-embedding-9 ")
    assert "sk-" not in name
    assert re.fullmatch(r"Call [0-9a-f]{16}\.__call__", as_embedder(Call().__call__).name)


def test_function_keeps_name_in_process():
    name = as_embedder(lengths).name
    assert re.fullmatch(r"unnamed function lengths \d+", name)
    assert as_embedder(lengths).name == Embedder(lengths, None).name == name


@pytest.mark.parametrize(
    "model",
    [lengths, scaled(1), functools.partial(lengths), str.split, Wrapper(scaled(1))],
    ids=["function", "lambda", "partial", "built-in", "object with a lambda"],
)
def test_stored_function_without_name_raises(model, tmp_path):
    path = tmp_path / "graph.nodekin"
    with pytest.raises(ValueError, match=r'NodeGraph\(embed=Embedder\(\w+, name="my-model"\)\)'):
        NodeGraph(embed=model, store=path)
    with pytest.raises(ValueError, match=r"NodeGraph\(embed=\{'a': Embedder\(\w+, name="):
        NodeGraph(embed={"a": Embedder(model, num_workers=2)}, store=path)
    NodeGraph(embed=Embedder(model, "named"), store=path).close()
    NodeGraph(embed=model).close()


@pytest.mark.parametrize(
    "model",
    [LangChainModel(), LlamaIndexModel(), Call(), Own(), Own().embed, Encoder()],
    ids=lambda model: type(model).__name__,
)
def test_stored_model_object_needs_no_name(model, tmp_path):
    NodeGraph(embed=model, store=tmp_path / "graph.nodekin").close()


def test_stored_llm_function_without_name_raises(tmp_path):
    def answer(prompt):
        return "tea"

    def declare(graph, llm):
        graph.create_node_group("a", LLMExtractor(llm))

    path = tmp_path / "graph.nodekin"
    declare(NodeGraph(), answer)
    with NodeGraph(store=path) as graph:
        with pytest.raises(ValueError, match=r'LLMExtractor\(LLM\(\w+, name="my-model"\), \.\.\.'):
            declare(graph, answer)
        declare(graph, LLM(answer, name="my-model"))
    with pytest.raises(ValueError, match=r'CachedLLM\(LLM\(\w+, name="my-model"\), \.\.\.\)'):
        CachedLLM(answer, path)
    assert CachedLLM(answer).complete("a") == "tea"
    assert CachedLLM(LLM(answer, "my-model"), path).complete("a") == "tea"


IN_ANOTHER_PROCESS = """
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from llama_index.core import MockEmbedding
from nodekin.nodegraph.models.embedder import as_embedder

class Model:
    def __init__(self):
        self.model_name = "m"
        self.options = {"b": {1, 2, 3, "x", "y"}, "a": object()}
    def encode(self, texts): ...

for model in (Model(), Model().encode,
              DeterministicFakeEmbedding(size=4), MockEmbedding(4)):
    print(as_embedder(model).name)
"""


@pytest.mark.slow
def test_model_name_is_equal_in_other_processes():
    names = {
        subprocess.run(
            [sys.executable, "-c", IN_ANOTHER_PROCESS],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(names) == 1
    assert len(set(names.pop().split("\n"))) == 5  # four names and an empty line
