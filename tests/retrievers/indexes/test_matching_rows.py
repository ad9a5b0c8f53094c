"""The cached rows that match filters."""

import numpy as np
import pytest

from nodekin.retrievers.indexes import matching_rows
from nodekin.retrievers.indexes.matching_rows import KeptMatches, MatchingRows


def some(count: int, size: int) -> MatchingRows:
    return MatchingRows.of(np.arange(size) < count)


def test_only_few_rows_are_listed() -> None:
    rows = some(2, 100).rows
    assert rows is not None
    assert rows.tolist() == [0, 1]
    assert some(3, 100).rows is None


def test_least_recently_used_match_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching_rows, "_MAX_KEPT", 2)
    kept = KeptMatches()
    kept.put("a", some(1, 100))
    kept.put("b", some(2, 100))
    assert kept.get("a", 100) is not None
    kept.put("c", some(3, 100))
    assert [key for key in "abc" if kept.get(key, 100) is not None] == ["a", "c"]


def test_match_of_fewer_rows_is_outdated() -> None:
    kept = KeptMatches()
    kept.put("a", some(1, 100))
    assert kept.get("a", 101) is None
    assert kept.get("a", 100) is None
