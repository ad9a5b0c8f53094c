"""HyDE: the search of imagined passages."""

import pytest

from nodekin.retrievers import HyDERetriever, Retriever


@pytest.mark.parametrize("include_query", [True, False])
def test_passages_and_query_are_fused(plain: Retriever, include_query: bool) -> None:
    retriever = HyDERetriever(plain, lambda prompt: "A tea drink.", include_query=include_query)
    results = retriever.retrieve("nile", top_k=2)
    queries = {match.query for result in results for match in result.evidence}
    assert queries == ({"nile", "A tea drink."} if include_query else {"A tea drink."})
    matches = [match for result in results for match in result.evidence]
    (variant,) = next(m for m in matches if m.query == "A tea drink.").variants
    assert (variant.query, variant.strategy) == ("nile", "hyde")
    assert len(retriever.retrieve("nile", top_k=1)) == 1
    assert retriever.retrieve("nile", filters={"lang": "zh"}) == []
    assert retriever.batch([" ", "nile"], top_k=2) == [[], results]
