"""Subclasses of NodeGraphRetriever that replace the search, and options of calls."""

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField
from support.langchain_runs import call

from nodekin.adapters.langchain import NodeGraphRetriever, retriever_tool

DOCUMENTS = [
    Document(f"Tea of {name}.", id=name, metadata={"user": name[:3], "secret": name.endswith("2")})
    for name in ("ann1", "ann2", "bob1", "bob2")
]


def public(documents):
    return [document for document in documents if not document.metadata["secret"]]


class Undeclared(NodeGraphRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return public(super()._get_relevant_documents(query, run_manager=run_manager))


class UndeclaredInBoth(Undeclared):
    async def _aget_relevant_documents(self, query, *, run_manager):
        found = await NodeGraphRetriever._aget_relevant_documents(
            self, query, run_manager=run_manager
        )
        return public(found)


class WithoutManager(NodeGraphRetriever):
    def _get_relevant_documents(self, query):
        return public(DOCUMENTS)


class Swallowing(NodeGraphRetriever):
    def _get_relevant_documents(self, query, *, run_manager, **options):
        return public(super()._get_relevant_documents(query, run_manager=run_manager))


class InvokeOnly(NodeGraphRetriever):
    def invoke(self, input, config=None, **options):
        return public(super().invoke(input, config))

    async def ainvoke(self, input, config=None, **options):
        return public(await super().ainvoke(input, config))


class Declared(NodeGraphRetriever):
    def _get_relevant_documents(self, query, *, run_manager, filter=None):
        found = super()._get_relevant_documents(query, run_manager=run_manager, filter=filter)
        return public(found)


class Passing(NodeGraphRetriever):
    def _get_relevant_documents(self, query, *, run_manager, **options):
        return public(super()._get_relevant_documents(query, run_manager=run_manager, **options))


UNDECLARED = [Undeclared, UndeclaredInBoth, WithoutManager]
CLASSES = [*UNDECLARED, Swallowing, InvokeOnly, Declared, Passing]


async def searched(tool, mode, config=None):
    asked = {"type": "tool_call", "id": "1", "name": tool.name, "args": {"query": "tea"}}
    message = tool.invoke(asked, config) if mode == "sync" else await tool.ainvoke(asked, config)
    return sorted(document.id for document in message.artifact)


@pytest.mark.parametrize("cls", CLASSES)
async def test_async_search_runs_replaced_sync_search(cls, mode):
    found = await call(cls.from_documents(DOCUMENTS), mode, "tea")
    assert sorted(document.id for document in found) == ["ann1", "bob1"]


@pytest.mark.parametrize("option", [{"filter": {"user": "ann"}}, {"k": 1}, {"score_threshold": 1}])
@pytest.mark.parametrize("cls", UNDECLARED)
async def test_options_that_a_subclass_drops_raise(cls, option, mode):
    retriever = cls.from_documents(DOCUMENTS)
    (name,) = option
    with pytest.raises(TypeError, match=rf"_get_relevant_documents must take '{name}' to apply"):
        await call(retriever, mode, "tea", **option)
    assert await call(retriever, mode, "tea", **{name: None})


@pytest.mark.parametrize("cls", CLASSES)
async def test_conditions_restrict_every_subclass(cls, mode):
    retriever = cls.from_documents(DOCUMENTS)
    tool = retriever_tool(retriever, "t", "d", conditions=lambda config: {"user": "ann"})
    assert await searched(tool, mode) == ["ann1"]


class Peer(BaseRetriever):
    """A retriever of another library that ignores a filter."""

    k: int = 1

    def _get_relevant_documents(self, query, *, run_manager):
        return DOCUMENTS[: self.k]


async def test_conditions_keep_the_configured_fields(mode):
    configurable = Peer().configurable_fields(k=ConfigurableField("k"))
    tool = retriever_tool(configurable, "t", "d", conditions=lambda config: {"user": "ann"})
    for number, expected in ((1, ["ann1"]), (2, ["ann1", "ann2"])):
        assert await searched(tool, mode, {"configurable": {"k": number}}) == expected
    ours = Passing.from_documents(DOCUMENTS).configurable_fields(k=ConfigurableField("k"))
    tool = retriever_tool(ours, "t", "d", conditions=lambda config: {"user": ["ann", "bob"]})
    for number, count in ((1, 1), (4, 2)):
        assert len(await searched(tool, mode, {"configurable": {"k": number}})) == count


async def test_conditions_restrict_the_chosen_alternative(mode):
    ours = NodeGraphRetriever.from_documents(DOCUMENTS)
    choice = ours.configurable_alternatives(
        ConfigurableField("which"), default_key="ours", peer=Peer(k=4)
    )
    tool = retriever_tool(choice, "t", "d", conditions=lambda config: {"user": "bob"})
    for which in ("ours", "peer"):
        found = await searched(tool, mode, {"configurable": {"which": which}})
        assert found == ["bob1", "bob2"]
