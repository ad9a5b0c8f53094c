"""The conditions of a restriction."""

from typing import Any

import pytest

from nodekin.retrievers.restriction import check_restriction


def test_check_restriction_returns_private_copy() -> None:
    given: dict[str, Any] = {"tenant": ["a"]}
    restriction = check_restriction(given)
    given["tenant"].append("b")
    assert restriction == {"tenant": ["a"]}


def test_check_restriction_without_condition_raises() -> None:
    with pytest.raises(ValueError, match="has no condition; give one, like"):
        check_restriction({})
