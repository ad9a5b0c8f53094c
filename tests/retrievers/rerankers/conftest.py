"""Fixtures of the rerankers' tests."""

from collections.abc import Iterator

import pytest

from nodekin.retrievers.rerankers.reranker import RERANKERS


@pytest.fixture
def clean_registry() -> Iterator[None]:
    """Restore the registry of rerankers after the test."""
    before = dict(RERANKERS)
    yield
    RERANKERS.clear()
    RERANKERS.update(before)
