"""Show the stages of a retrieval as LangChain runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, cast

from langchain_core.callbacks import (
    BaseCallbackManager,
    CallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from ...retrievers import Span, observe
from .event_dispatch import Teller


class RunObserver:
    """Make a chain run of every stage, below the run in which it happens.

    Where many queries are worked on at once, a stage of one is below that query's run, and one of
    all is below each.

    That run is the one of LangChain's config context, which threads and tasks inherit: a stage
    of a branch that works in a thread is below its fusion, and a LangChain model or chain that
    is called within a stage, with or without a config, is below the stage. Inputs are the facts
    known when the stage begins, outputs those that came of it.

    Args:
        loop: The event loop that is not to be blocked; None where nothing is async.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.teller = Teller(loop)
        self._begun: dict[int, _Begun] = {}

    def begin(self, span: Span, parent: Span | None) -> None:
        """Start a run, and let it be the one in which further things happen."""
        config = var_child_runnable_config.get()
        at_once = _at_once.get()
        places = _places(config, at_once, span.facts.get("query"))
        if config is None or not places:
            return
        runs = [_Run(query, manager, _new_run(manager, span.name)) for query, manager in places]
        self._begun[id(span)] = _Begun(span, dict(span.facts), config, at_once, runs)
        children = tuple((run.query, _child(run.run, self.teller)) for run in runs)
        var_child_runnable_config.set(_inherited(config, children[0][1]))
        _at_once.set(children if at_once else ())
        for run in runs:
            named = {"metadata": run.manager.metadata, "name": span.name}
            self._tell(run, "on_chain_start", None, dict(span.facts), **named)

    def end(self, span: Span) -> None:
        """End the run, with the stage's error where it has one."""
        begun = self._begun.pop(id(span), None)
        if begun is None:
            return
        var_child_runnable_config.set(begun.config)
        _at_once.set(begun.at_once)
        for run in begun.runs:
            if span.error is not None:
                self._tell(run, "on_chain_error", span.error)
            else:
                self._tell(run, "on_chain_end", _came_of_it(begun.facts, span.facts))

    def _tell(self, run: _Run, event: str, *args: Any, **named: Any) -> None:
        self.teller.tell(
            run.manager.handlers,
            event,
            *args,
            run_id=run.run.run_id,
            parent_run_id=run.manager.parent_run_id,
            tags=run.manager.tags,
            **named,
        )


Place = tuple[str, BaseCallbackManager]
"""A query, and what tells of things that happen in its run."""

_at_once: ContextVar[tuple[Place, ...]] = ContextVar("queries at once", default=())


class _Run(NamedTuple):
    query: str
    manager: BaseCallbackManager
    run: CallbackManagerForChainRun


class _Begun(NamedTuple):
    """A stage that began, where it did, and its runs."""

    span: Span
    facts: dict[str, Any]
    config: RunnableConfig
    at_once: tuple[Place, ...]
    runs: list[_Run]


def _places(
    config: RunnableConfig | None, at_once: tuple[Place, ...], query: object
) -> list[Place]:
    """Return where a stage is to be shown: below what is going on, for one query or several."""
    manager = None if config is None else config.get("callbacks")
    if not isinstance(manager, BaseCallbackManager):
        return []
    if not at_once or manager.parent_run_id != at_once[0][1].parent_run_id:
        return [("", manager)] if manager.handlers else []  # a run of LangChain's is in between
    own = [place for place in at_once if place[0] == query]
    return [place for place in own or at_once if place[1].handlers]


_observer: ContextVar[RunObserver | None] = ContextVar("run observer", default=None)


@contextmanager
def observed() -> Iterator[None]:
    """Show the stages of what is done in the block as runs below the one it is done in.

    Does nothing where nobody is to be told.
    """
    if _observer.get() is not None or not _anyone():
        yield
        return
    observer = RunObserver()
    token = _observer.set(observer)
    try:
        with observe(observer):
            yield
    finally:
        _observer.reset(token)


@asynccontextmanager
async def aobserved() -> AsyncIterator[None]:
    """Do the same without blocking the event loop; at the end everyone has been told."""
    around = _observer.get()
    if around is not None or not _anyone():
        yield
        if around is not None:
            await around.teller.told()
        return
    observer = RunObserver(asyncio.get_running_loop())
    token = _observer.set(observer)
    try:
        with observe(observer):
            yield
    finally:
        _observer.reset(token)
        await observer.teller.told()


@contextmanager
def below(*places: Place) -> Iterator[None]:
    """Let what is done in the block, here and in threads and tasks begun here, be below runs.

    Args:
        places: One query, or several that are worked on at once, and what
            ``run_manager.get_child()`` gives for each.
    """
    config = _inherited(var_child_runnable_config.get() or {}, places[0][1])
    token = var_child_runnable_config.set(config)
    many = _at_once.set(places if len(places) > 1 else ())
    try:
        yield
    finally:
        _at_once.reset(many)
        var_child_runnable_config.reset(token)


def around(config: RunnableConfig) -> RunnableConfig:
    """Return the config for what happens in a run, whose name and id are the run's alone."""
    kept = {key: value for key, value in config.items() if key not in ("run_id", "run_name")}
    return cast("RunnableConfig", kept)


def _anyone() -> bool:
    manager = (var_child_runnable_config.get() or {}).get("callbacks")
    one = isinstance(manager, BaseCallbackManager) and bool(manager.handlers)
    return one or any(each.handlers for _, each in _at_once.get())


def _new_run(manager: BaseCallbackManager, name: str) -> CallbackManagerForChainRun:
    """Return a run below a manager's, of which nobody has been told yet."""
    quiet = CallbackManager(
        handlers=[],
        inheritable_handlers=manager.inheritable_handlers,
        parent_run_id=manager.parent_run_id,
        tags=manager.tags,
        inheritable_tags=manager.inheritable_tags,
        metadata=manager.metadata,
        inheritable_metadata=manager.inheritable_metadata,
    )
    return quiet.on_chain_start(None, {}, name=name)


def _child(run: CallbackManagerForChainRun, teller: Teller) -> CallbackManager:
    """Return what tells of things in a run, after all have been told of the run itself."""
    child = run.get_child()
    others = [each for each in child.handlers if each not in teller.in_order]
    child.set_handlers([*teller.in_order, *others] if others else [])
    return child


def _inherited(config: RunnableConfig, callbacks: BaseCallbackManager) -> RunnableConfig:
    return cast("RunnableConfig", {**around(config), "callbacks": callbacks})


def _came_of_it(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    new = object()
    return {fact: value for fact, value in after.items() if before.get(fact, new) != value}


@contextmanager
def within(config: RunnableConfig) -> Iterator[None]:
    """Show what is done in the block, in stages, below the run that a config is of.

    Args:
        config: What LangChain gives the function that a runnable runs.
    """
    token = var_child_runnable_config.set(around(config))
    try:
        with observed():
            yield
    finally:
        var_child_runnable_config.reset(token)


@asynccontextmanager
async def awithin(config: RunnableConfig) -> AsyncIterator[None]:
    """Do the same without blocking the event loop."""
    token = var_child_runnable_config.set(around(config))
    try:
        async with aobserved():
            yield
    finally:
        var_child_runnable_config.reset(token)
