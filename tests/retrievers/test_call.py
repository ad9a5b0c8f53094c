"""The filters, the restriction and the token budget of a search."""

from typing import Any

import pytest

from nodekin.nodegraph import Node
from nodekin.retrievers import ScoredNode
from nodekin.retrievers.call import Call, check_restriction, limit_tokens, restrict_calls
from nodekin.retrievers.results import Evidence
from nodekin.retrievers.retrieval_conditions import HitConditions
from nodekin.retrievers.token_budget import TokenBudget


def test_call_has_restriction_and_budget_around_it() -> None:
    budget = TokenBudget(40)
    with restrict_calls({"tenant": "a"}), limit_tokens(budget):
        call = Call.begin({"year": 2020})
    assert call == Call({"year": 2020}, {"tenant": "a"}, budget)
    assert call.conditions == {"and": [{"tenant": "a"}, {"year": 2020}]}
    assert Call.begin() == Call()


def test_nested_restrictions_are_combined() -> None:
    with restrict_calls({"tenant": "a"}):
        with restrict_calls({"year": 2020}):
            inner = Call.begin()
        outer = Call.begin()
    assert inner.restriction == {"and": [{"tenant": "a"}, {"year": 2020}]}
    assert outer.restriction == {"tenant": "a"}


def test_restriction_does_not_change_budget() -> None:
    budget = TokenBudget(40)
    with limit_tokens(budget), restrict_calls({"tenant": "a"}):
        assert Call.begin().budget is budget
        with limit_tokens(None):
            assert Call.begin() == Call(restriction={"tenant": "a"})


def test_budget_without_limit_keeps_outer_budget() -> None:
    budget = TokenBudget(40)
    with limit_tokens(budget), limit_tokens(TokenBudget(order="document")):
        assert Call.begin().budget is budget


def test_hit_conditions_keep_restriction_of_their_call() -> None:
    with restrict_calls({"tenant": "a"}):
        conditions = HitConditions(Call.begin({"year": 2020}), {"kind": "tea"})
    hit = Node("Tea.", {"tenant": "a", "year": 2020, "kind": "tea"})
    met = conditions([ScoredNode(hit, 1.0, (Evidence(hit, 1.0, "bm25", "tea"),))])
    assert met.met_by(hit)
    assert met.restriction.matches(hit)
    assert not met.allow(Node("Tea.", {"tenant": "b"}), hit)


def test_check_restriction_returns_private_copy() -> None:
    given: dict[str, Any] = {"tenant": ["a"]}
    restriction = check_restriction(given)
    given["tenant"].append("b")
    assert restriction == {"tenant": ["a"]}


def test_check_restriction_without_condition_raises() -> None:
    with pytest.raises(ValueError, match="has no condition; give one, like"):
        check_restriction({})
