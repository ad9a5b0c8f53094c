"""Rewriting a query: what the model sees besides the query."""

from typing import Any

from nodekin.retrievers.strategies.rewrite import QueryRewrite

QUERY = "Is the Nile longer than the Amazon?"


def test_glossary_and_domain_are_shown_where_they_matter(scripted: Any) -> None:
    model = scripted("Nile?")
    rewrite = QueryRewrite(
        model, domain="rivers", glossary={"nile": "River Nile", "tea": "Camellia sinensis"}
    )
    rewrite(QUERY)
    assert "rivers" in model.prompts[0]
    assert "nile: River Nile" in model.prompts[0]
    assert "Camellia" not in model.prompts[0]


def test_braces_in_a_query_stay(scripted: Any) -> None:
    model = scripted("Nile?")
    QueryRewrite(model, domain="rivers")("What does {domain} or {query} mean?")
    assert "What does {domain} or {query} mean?" in model.prompts[0]
