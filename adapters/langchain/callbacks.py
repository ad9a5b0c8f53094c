"""LangChain runs for the stages of a retrieval."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from langchain_core.callbacks import CallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, patch_config, var_child_runnable_config

from ...nodegraph.concurrency import limit_concurrency
from ...retrievers.tracing import Span, observe
from .documents import to_document


def set_config(config: RunnableConfig | None) -> RunnableConfig | None:
    """Set the config of the runs that start next, and return the previous config.

    LangChain has no public function for this that also works in code with ``yield`` and ``await``.
    No other function in this package uses the private context variable.
    """
    previous = var_child_runnable_config.get()
    var_child_runnable_config.set(config)
    return previous


@contextmanager
def config_context(config: RunnableConfig) -> Iterator[None]:
    """Set the config of the runs that start in the block."""
    previous = set_config(config)
    try:
        yield
    finally:
        set_config(previous)


class StageRuns:
    """An observer that creates a chain run for each search, fusion, reranking and model call.

    The parent of a run is the run in LangChain's config context, which threads inherit. Therefore,
    if a stage calls a LangChain model, the model's run is below the stage's run.
    """

    def __init__(self) -> None:
        self._open: dict[int, tuple[Any, RunnableConfig]] = {}

    def begin(self, span: Span, parent: Span | None) -> None:
        """Start the run of a stage."""
        config = ensure_config()
        manager = config.get("callbacks")
        if not isinstance(manager, CallbackManager):
            return
        run = manager.on_chain_start(None, dict(span.attributes), name=span.name)
        self._open[id(span)] = run, config
        set_config(patch_config(config, callbacks=run.get_child()))

    def end(self, span: Span) -> None:
        """End the run of a stage, and record a search's documents or the error."""
        if id(span) not in self._open:
            return
        run, config = self._open.pop(id(span))
        set_config(config)
        if span.error is not None:
            run.on_chain_error(span.error)
            return
        outputs = dict(span.attributes)
        documents = []
        for results in span.results or ():
            documents += [to_document(result) for result in results]
        if documents:
            outputs["documents"] = documents
        run.on_chain_end(outputs)


_STAGE_RUNS = StageRuns()


@contextmanager
def child_runs(config: RunnableConfig) -> Iterator[None]:
    """Set the config's run as the parent of runs in the block, within its ``max_concurrency``.

    With sync callbacks, the stages of a retrieval become runs as well. With async callbacks they do
    not, since their events would have to be awaited.
    """
    callbacks = config.get("callbacks")
    listens = isinstance(callbacks, CallbackManager) and bool(callbacks.handlers)
    with (
        config_context(config),
        limit_concurrency(config.get("max_concurrency")),
        observe(_STAGE_RUNS) if listens else nullcontext(),
    ):
        yield


def retriever_runs(run_manager: Any) -> AbstractContextManager[None]:
    """Set a retriever's run as the parent of runs in the block, using the config context."""
    return child_runs(patch_config(ensure_config(), callbacks=run_manager.get_child()))
