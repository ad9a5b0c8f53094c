"""A call of which no handler would hear makes no run; every handler hears, however it is set."""

from contextlib import contextmanager
from contextvars import ContextVar

import langsmith
import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.globals import set_debug
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import (
    _configure_hooks,
    collect_runs,
    register_configure_hook,
    tracing_v2_enabled,
)
from langchain_runs import call

from nodekin.adapters.langchain import NodeGraphRetriever, callbacks

QUERY = "fermented tea"


class Heard(BaseCallbackHandler):
    """Notes the starts and ends of retriever runs."""

    latest = None

    def __init__(self):
        self.events = []
        Heard.latest = self

    def on_retriever_start(self, *args, **kwargs):
        self.events.append("start")

    def on_retriever_end(self, *args, **kwargs):
        self.events.append("end")

    def on_retriever_error(self, *args, **kwargs):
        self.events.append("error")


variable = ContextVar("handler of a hook", default=None)


@contextmanager
def hook(monkeypatch, *, environment=None):
    """Register a variable, or the name of one of the environment, that gives a handler."""
    monkeypatch.setattr(callbacks, "_HOOKS", _configure_hooks)
    before = len(_configure_hooks)
    register_configure_hook(variable, True, environment and Heard, environment)
    handler = Heard()
    if environment:
        monkeypatch.setenv(environment, "true")
    token = variable.set(None if environment else handler)
    try:
        yield
    finally:
        variable.reset(token)
        del _configure_hooks[before:]


@contextmanager
def debugging():
    set_debug(True)
    try:
        yield
    finally:
        set_debug(False)


@contextmanager
def tracing_by_environment(monkeypatch, client):
    remembered = langsmith.utils.get_env_var
    with monkeypatch.context() as patch, langsmith.tracing_context(client=client):
        patch.setenv("LANGSMITH_TRACING", "true")
        remembered.cache_clear()
        yield
    remembered.cache_clear()


def ways(monkeypatch, client):
    """Ways to hear of all that is called, without saying so in the call."""
    return {
        "tracing": lambda: tracing_v2_enabled(client=client),
        "collected runs": collect_runs,
        "variable": lambda: hook(monkeypatch),
        "environment": lambda: hook(monkeypatch, environment="NODEKIN_TEST_HANDLER"),
        "debug": debugging,
        "LangSmith's context": lambda: langsmith.tracing_context(enabled=True, client=client),
        "LangSmith's environment": lambda: tracing_by_environment(monkeypatch, client),
    }


@pytest.fixture
def client():
    """A client of LangSmith that sends nothing."""

    class Client(langsmith.Client):
        def create_run(self, *args, **kwargs):
            pass

        def update_run(self, *args, **kwargs):
            pass

    return Client(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False)


@pytest.fixture
def runs(monkeypatch):
    """Counts the runs that are made."""
    made = []
    sync, coroutine = BaseRetriever.invoke, BaseRetriever.ainvoke

    def invoke(self, *args, **kwargs):
        made.append(self)
        return sync(self, *args, **kwargs)

    async def ainvoke(self, *args, **kwargs):
        made.append(self)
        return await coroutine(self, *args, **kwargs)

    monkeypatch.setattr(BaseRetriever, "invoke", invoke)
    monkeypatch.setattr(BaseRetriever, "ainvoke", ainvoke)
    return made


async def test_nobody_listens_and_no_run_is_made(retriever, mode, runs):
    assert callbacks.nobody_listens()
    assert not CallbackManager.configure().handlers
    assert await call(retriever, mode, QUERY)
    assert await call(retriever, mode, QUERY, None, k=1, score_threshold=0.1)
    assert not runs


@pytest.mark.filterwarnings("ignore:The `copy` method is deprecated")  # LangChain 1.0 calls it
@pytest.mark.parametrize("way", ways(None, None))
async def test_handlers_hear_however_they_are_set(
    retriever, mode, runs, way, monkeypatch, client, capsys
):
    silent = await call(retriever, mode, QUERY)
    with ways(monkeypatch, client)[way]() as heard:
        assert not callbacks.nobody_listens()
        assert CallbackManager.configure().handlers
        assert await call(retriever, mode, QUERY) == silent
    assert len(runs) == 1
    if way == "collected runs":
        assert [run.name for run in heard.traced_runs] == ["NodeGraphRetriever"]
    if way in ("variable", "environment"):
        assert Heard.latest.events == ["start", "end"]
    if way == "debug":
        assert "NodeGraphRetriever" in capsys.readouterr().out
    assert callbacks.nobody_listens()


async def test_handlers_of_the_call_hear_the_same_documents(retriever, mode):
    silent = await call(retriever, mode, QUERY)
    for heard_by in ("call", "chain", "with_config"):
        handler = Heard()
        config, called = {"callbacks": [handler]}, retriever
        if heard_by == "chain":
            called = RunnableLambda(lambda query: query) | retriever
        if heard_by == "with_config":
            config, called = None, retriever.with_config(callbacks=[handler])
        documents = await call(called, mode, QUERY, config)
        assert documents == silent, heard_by
        assert [d.model_dump() for d in documents] == [d.model_dump() for d in silent]
        assert handler.events == ["start", "end"]


async def test_a_call_within_a_run_is_heard(retriever, mode):
    async def inner(query):
        return await call(retriever, mode, query)

    handler = Heard()
    await RunnableLambda(inner).ainvoke(QUERY, {"callbacks": [handler]})
    assert handler.events == ["start", "end"]


@pytest.mark.parametrize("listens", [False, True])
async def test_errors_are_the_same(retriever, mode, listens):
    handler = Heard()
    config = {"callbacks": [handler]} if listens else None
    for arguments, error in (({"q": 1}, TypeError), ({"k": 0}, ValueError)):
        with pytest.raises(error, match="no argument 'q'" if "q" in arguments else "1 or more"):
            await call(retriever, mode, QUERY, config, **arguments)
    assert handler.events == (["start", "error"] * 2 if listens else [])


async def test_a_class_that_searches_in_its_own_way_does_so(native, mode):
    class Own(NodeGraphRetriever):
        def _get_relevant_documents(self, query, *, run_manager, **options):
            documents = super()._get_relevant_documents(query, run_manager=run_manager, **options)
            return documents[:1]

        async def _aget_relevant_documents(self, query, *, run_manager, **options):
            documents = await super()._aget_relevant_documents(
                query, run_manager=run_manager, **options
            )
            return documents[:1]

    whole = await call(NodeGraphRetriever(retriever=native), mode, QUERY)
    assert await call(Own(retriever=native), mode, QUERY) == whole[:1] != whole


def test_tracing_as_it_was_before_is_refused_as_ever(retriever, monkeypatch):
    monkeypatch.setenv("LANGCHAIN_TRACING", "true")
    callbacks._asks_for_old_tracing.cache_clear()
    try:
        with pytest.raises(RuntimeError, match="LANGCHAIN_TRACING_V2"):
            retriever.invoke(QUERY)
    finally:
        callbacks._asks_for_old_tracing.cache_clear()


def test_where_the_handlers_are_unknown_runs_are_made(retriever, runs, monkeypatch):
    monkeypatch.setattr(callbacks, "_HOOKS", None)
    retriever.invoke(QUERY)
    assert len(runs) == 1
