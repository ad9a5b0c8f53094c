from nodekin.adapters.cli.errors import safe


def test_escape_sequences_lose_their_power():
    assert safe("a\x1b[2J\x9b茶\n\tb\x7f") == "a\ufffd[2J\ufffd茶\n\tb\ufffd"
    assert safe("abc\u202egpj.exe") == "abc\ufffdgpj.exe"


def test_what_a_document_says_does_not_reach_the_terminal(nodekin, here):
    (here / "docs" / "bad.txt").write_text("Zebra \x1b]0;title\x07 stripes.", encoding="utf-8")
    for command in (["search"], ["search", "--full"], ["explain"]):
        ran = nodekin(*command, "zebra", "--in", "docs")
        assert ran.status == 0
        assert "\x1b" not in ran.out
        assert "\x07" not in ran.out
    told = nodekin("search", "zebra", "--in", "docs", "--json")
    assert "\x1b" not in told.out
    assert told.json["results"][0]["text"] == "Zebra \x1b]0;title\x07 stripes."
