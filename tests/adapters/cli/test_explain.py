def test_the_steps_and_the_reasons_are_printed(nodekin):
    ran = nodekin("explain", "fermented", "--in", "docs", "-g", "sentence", "-t", "passage")
    assert ran.status == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("explain (")
    assert lines[1].startswith("└─ search query=fermented group=sentence similarity=bm25")
    assert "1. docs/tea.md:5" in lines
    assert '  sentence  bm25 for "fermented": "It is fermented."' in ran.out


def test_json_has_the_trace(nodekin):
    told = nodekin("explain", "fermented", "--in", "docs", "--json").json
    assert told["trace"]["name"] == "explain"
    assert [span["name"] for span in told["trace"]["children"]] == ["search"]
    assert told["trace"]["children"][0]["attributes"]["group"] == "passage"
    assert told["results"][0]["document"] == "docs/tea.md"


def test_nothing_found(nodekin):
    ran = nodekin("explain", "zebra", "--in", "docs")
    assert ran.status == 1
    assert "search query=zebra" in ran.out
    assert "nothing found" in ran.err
