def test_list_prints_lengths(indexed):
    ran = indexed("list")
    assert ran.status == 0
    rows = [line.split() for line in ran.out.splitlines()]
    assert rows == [["54", "docs/river.txt"], ["77", "docs/tea.md"], ["32", "docs/茶.md"]]


def test_show_prints_text(indexed, here):
    text = (here / "docs" / "tea.md").read_text("utf-8")
    for name in ("docs/tea.md", "tea.md", str(here / "docs" / "tea.md")):
        assert indexed("show", name).out == text + "\n"


def test_show_prints_lines_around(indexed, here):
    (here / "docs" / "long.txt").write_text("\n".join(f"line {n}" for n in range(1, 41)), "utf-8")
    indexed("index")
    lines = indexed("show", "long.txt:20").out.splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("10  line 10", "30  line 30", 21)
    assert indexed("show", "long.txt:41").status == 2


def test_show_of_unknown_document_raises(indexed):
    ran = indexed("show", "tee.md")
    assert (ran.status, ran.out) == (2, "")
    assert "no document 'tee.md'; it has 'docs/tea.md'" in ran.err


def test_show_of_ambiguous_name_raises(indexed, here):
    (here / "docs" / "more").mkdir()
    (here / "docs" / "more" / "tea.md").write_text("More tea.", "utf-8")
    indexed("index")
    ran = indexed("show", "tea.md")
    assert ran.status == 2
    assert "'tea.md' is ambiguous: docs/more/tea.md, docs/tea.md" in ran.err
    assert indexed("show", "docs/more/tea.md").out == "More tea.\n"


def test_show_replaces_control_characters(indexed, here):
    (here / "docs" / "bad.txt").write_text("tea\x1b[2J", "utf-8")
    indexed("index")
    assert indexed("show", "bad.txt").out == "tea\ufffd[2J\n"


def test_removed_document_stays_away(indexed, here):
    ran = indexed("remove", "docs/tea.md")
    assert (ran.status, ran.out) == (0, "removed 1 document; 2 left\n")
    assert indexed("search", "fermented").status == 1
    assert indexed("index").out.startswith("2 documents")
    assert "1 added" in indexed("index", "docs/tea.md").out
    assert indexed("search", "fermented").status == 0


def test_remove_of_source(indexed, here):
    assert indexed("remove", "docs", "--json").json == {
        "format": 1,
        "command": "remove",
        "removed": 3,
        "documents": 0,
    }
    assert indexed("status", "--json").json["sources"] == []
    (here / "docs" / "new.txt").write_text("Coffee.", "utf-8")
    assert indexed("index").status == 1


def test_remove_of_missing_folder(indexed, here):
    (here / "docs" / "more").mkdir()
    (here / "docs" / "more" / "milk.txt").write_text("Milk is white.", "utf-8")
    indexed("index")
    assert indexed("remove", "docs/more", "--json").json["removed"] == 1
    for file in (here / "docs").rglob("*.*"):
        file.unlink()
    (here / "docs" / "more").rmdir()
    (here / "docs").rmdir()
    assert indexed("remove", "docs", "--json").json["removed"] == 3


def test_remove_of_unknown_name_removes_nothing(indexed):
    ran = indexed("remove", "docs/tea.md", "coffee.md")
    assert ran.status == 2
    assert "no document 'coffee.md'" in ran.err
    assert indexed("list", "--json").json["count"] == 3


def test_list_folds_records_of_a_file(indexed, here):
    rows = "".join(f'{{"text": "Tea number {n}."}}\n' for n in range(12))
    (here / "docs" / "notes.jsonl").write_text(rows)
    indexed("index")
    (line,) = [line for line in indexed("list").out.splitlines() if "notes" in line]
    assert line.endswith("  docs/notes.jsonl (12 records)")
    assert indexed("list", "--json").json["count"] == 3 + 12
