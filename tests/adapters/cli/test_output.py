def test_the_place_the_score_and_the_text_are_shown(indexed):
    ran = indexed("search", "fermented")
    assert ran.status == 0
    head, *text = ran.out.splitlines()
    assert head.startswith("1. docs/tea.md:7  ")
    assert head.endswith("  passage")
    assert text == ["   # Tea Green tea is steamed. It stays green. ## Black tea It is fermented."]


def test_json_has_every_field(indexed, here):
    (result,) = indexed("search", "Wuhan", "--json").json["results"]
    text = (here / "docs" / "river.txt").read_text(encoding="utf-8")
    assert result["rank"] == 1
    assert result["document"] == "docs/river.txt"
    assert result["path"] == str(here / "docs" / "river.txt")
    assert (result["line"], result["group"]) == (1, "passage")
    assert text[result["start"] : result["end"]] == result["text"]
    assert result["metadata"]["file_name"] == "river.txt"
    assert {match["group"] for match in result["matches"]} == {"passage", "sentence"}
    for match in result["matches"]:
        assert (match["similarity"], match["query"]) == ("bm25", "Wuhan")


def test_matches_are_marked_for_terminals_only(indexed):
    assert "\x1b[31m\x1b[1mfermented\x1b[0m" in indexed("search", "fermented", color=True).out
    assert "\x1b" not in indexed("search", "fermented").out


def test_no_color(indexed, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in indexed("search", "fermented", color=True).out


def test_full_shows_the_text_as_it_is(indexed):
    out = indexed("search", "fermented", "--full").out.splitlines()[1:]
    assert out[-3:] == ["   ## Black tea", "", "   It is fermented."]
