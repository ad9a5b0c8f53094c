"""A search that is explained, and what is missing in it."""


def test_why_one_is_missing(client) -> None:
    told = client.post("/api/missing", query="steamed tea", wanted="rivers.md", top_k=1).json()
    assert told["result"] is None
    assert told["words_lacking"] == ["steam", "tea"]
    told = client.post("/api/missing", query="steamed tea", wanted="black.md", top_k=1).json()
    assert told["result"]["rank"] > 1
    assert told["words"] == ["tea"]
    none = client.post("/api/missing", query="tea", wanted="blck.md")
    assert none.status_code == 400
    assert "tea/black.md" in none.json()["error"]


def test_looking_for_what_is_missing_declares_no_group(client, graph) -> None:
    before = list(graph.groups)
    client.post("/api/missing", query="tea", wanted="rivers.md")
    assert list(graph.groups) == before
