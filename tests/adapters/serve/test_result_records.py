"""How a result was found, as the page shows it."""


def test_a_result_shows_query_hit_lift_and_rank(client) -> None:
    setup = 'type = "Retriever"\ngroup_name = "sentence"\ntarget = "passage"'
    found = client.post("/api/search", query="fermented", setup=setup).json()
    (result,) = found["results"]
    assert (result["rank"], result["group"], result["document"]) == (1, "passage", "tea/black.md")
    (match,) = result["matches"]
    assert (match["query"], match["similarity"], match["group"]) == (
        *("fermented", "bm25"),
        "sentence",
    )
    assert not match["itself"]
    before, hit, after = result["text"]
    assert hit == match["text"] == "Black tea is fermented."
    assert before + hit + after == "# Black tea\n\nBlack tea is fermented. Its leaves are dark."
    assert found["stages"]


def test_texts_that_utf_8_does_not_have_are_shown(client, graph) -> None:
    graph.add("Half a \ud83c character.")
    found = client.post("/api/search", query="half character").json()
    assert "Half a ?" in "".join(found["results"][0]["text"])
