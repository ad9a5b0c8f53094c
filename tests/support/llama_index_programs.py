"""Run programs with a LlamaIndex index and a nodekin index, and compare results and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest
from llama_index.core import Document, Settings, StorageContext, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, NodeWithScore

from nodekin.adapters.llama_index import NodeGraphIndex
from support.llama_index_events import recorded
from support.llama_index_models import ScriptedLLM, Words

TEXTS = {
    "green": "Green tea is steamed in China. Its leaves stay green.",
    "black": "Black tea is fermented for days. It keeps for years.",
    "coffee": "Coffee is roasted and ground. It is brewed with water.",
    "beer": "Beer is fermented from malt and hops. It is cold.",
    "river": "Rivers run to the sea. They carry sand.",
}
QUESTION = "Which tea is fermented?"


def documents() -> list[Document]:
    """Return five documents with metadata."""
    return [
        Document(text=text, id_=name, metadata={"name": name, "year": 2000 + at, "kind": text[:5]})
        for at, (name, text) in enumerate(TEXTS.items())
    ]


def splitter() -> SentenceSplitter:
    """Return a splitter that creates nodes with stable ids."""
    return SentenceSplitter(
        chunk_size=40,
        chunk_overlap=0,
        include_prev_next_rel=True,
        id_func=lambda at, document: f"{document.id_}-{at}",
    )


def answering(answer: Any = "Black tea.") -> ScriptedLLM:
    """Return a language model that always gives the same answer."""
    return ScriptedLLM(answer=answer, prompts=[])


class Kit(NamedTuple):
    """The index class with which a program runs, and the arguments of this class."""

    cls: Any
    options: dict[str, Any]

    def from_documents(self, given: Iterable[Document] | None = None, **options: Any) -> Any:
        """Create an index from documents."""
        options = {"embed_model": Words(texts=[]), "transformations": [splitter()], **options}
        made = documents() if given is None else given
        return self.cls.from_documents(made, **options, **self.options)

    def of_nodes(self, nodes: list[BaseNode], **options: Any) -> Any:
        """Create an index from nodes."""
        return self.cls(nodes, embed_model=Words(texts=[]), **options, **self.options)


class Outcome(NamedTuple):
    """The result of a program, and the callbacks, spans and events that were recorded."""

    value: Any
    callbacks: Counter[str]
    events: Counter[str]


KITS = (Kit(VectorStoreIndex, {}), Kit(NodeGraphIndex, {"similarity": "cosine"}))

Program = Callable[[Kit], Any]


def described(nodes: Iterable[NodeWithScore]) -> list[Any]:
    """Return the properties of results that are compared.

    These are the type, id, text, metadata, relationships and score.
    """
    return [
        (
            type(result.node).__name__,
            result.node.node_id,
            result.node.get_content(),
            sorted(result.node.metadata.items()),
            sorted(relation.name for relation in result.node.relationships),
            None if result.score is None else round(result.score, 4),
        )
        for result in nodes
    ]


def outcomes(program: Program, monkeypatch: pytest.MonkeyPatch) -> tuple[Outcome, Outcome]:
    """Run a program with both indexes, and return both outcomes."""
    found = []
    for kit in KITS:
        with recorded() as (callbacks, events):
            monkeypatch.setattr(Settings, "_callback_manager", CallbackManager([callbacks]))
            value = program(kit)
        found.append(Outcome(value, callbacks.seen, events))
    return found[0], found[1]


def check(program: Program, monkeypatch: pytest.MonkeyPatch, *, counts: bool = True) -> None:
    """Check that a program has the same results and events with both indexes.

    Args:
        program: The program.
        monkeypatch: The fixture with which the callback manager is set.
        counts: Whether each event must occur equally often.
    """
    theirs, ours = outcomes(program, monkeypatch)
    assert theirs.value
    assert ours.value == theirs.value, f"{ours.value}\nis not\n{theirs.value}"
    for of_ours, of_theirs in zip(ours[1:], theirs[1:], strict=True):
        if counts:
            assert of_ours == of_theirs, {
                name: (of_ours[name], of_theirs[name])
                for name in of_ours | of_theirs
                if of_ours[name] != of_theirs[name]
            }
        assert of_ours.keys() == of_theirs.keys()


def storage(folder: str) -> StorageContext:
    """Return a storage context that loads from the given folder."""
    return StorageContext.from_defaults(persist_dir=folder)
