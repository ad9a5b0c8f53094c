"""Report the stages of a retrieval to LangChain callbacks as runs."""

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
    """Set the LangChain config for runs that start after this call, and return the previous config.

    LangChain has no public function for this that also works in generators and coroutines, so this
    function sets LangChain's private context variable. No other code in this package uses it.
    """
    previous = var_child_runnable_config.get()
    var_child_runnable_config.set(config)
    return previous


@contextmanager
def config_context(config: RunnableConfig) -> Iterator[None]:
    """Set the LangChain config for all runs that start inside the ``with`` block."""
    previous = set_config(config)
    try:
        yield
    finally:
        set_config(previous)


class StageRuns:
    """An observer that creates a LangChain run for each search, fusion, reranking and model call.

    The parent of each run is the current run in LangChain's config context, which threads inherit.
    If a stage calls a LangChain model, the run of the model is therefore a child of the run of the
    stage.
    """

    def __init__(self) -> None:
        self._open: dict[int, tuple[Any, RunnableConfig]] = {}

    def begin(self, span: Span, parent: Span | None) -> None:
        """Start a run for a stage."""
        config = ensure_config()
        manager = config.get("callbacks")
        if not isinstance(manager, CallbackManager):
            return
        run = manager.on_chain_start(None, dict(span.attributes), name=span.name)
        self._open[id(span)] = run, config
        set_config(patch_config(config, callbacks=run.get_child()))

    def end(self, span: Span) -> None:
        """End the run of a stage, and record the retrieved documents or the error."""
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
    """Make all runs in the ``with`` block children of the run of a config.

    The ``max_concurrency`` of the config applies to these runs. If the callbacks are synchronous,
    each stage of a retrieval is reported as a run as well. Async callbacks are not called for
    stages, because they would have to be awaited.
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
    """Make runs in the ``with`` block children of a retriever's run."""
    return child_runs(patch_config(ensure_config(), callbacks=run_manager.get_child()))
