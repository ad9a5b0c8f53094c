"""Let what a runnable of ours does be below its own run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from .observer import aobserved, around, observed


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
