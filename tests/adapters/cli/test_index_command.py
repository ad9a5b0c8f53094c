import threading
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from support.sample_files import pdf_of

from nodekin.adapters.cli import index_command


def test_index_prints_counts(nodekin):
    ran = nodekin("index", "docs")
    assert ran.status == 0
    assert ran.out.splitlines() == ["3 documents in .nodekin: 3 added", "3 passages, 11 sentences"]
    assert ran.err == ""


def test_index_again_reads_changed_files(nodekin, here):
    nodekin("index", "docs")
    (here / "docs" / "river.txt").unlink()
    (here / "docs" / "tea.md").write_text("# Tea\n\nWhite tea is withered.\n", encoding="utf-8")
    (here / "docs" / "new.txt").write_text("Coffee is roasted.", encoding="utf-8")
    (here / "docs" / "茶.md").rename(here / "docs" / "茶书.md")
    ran = nodekin("index")
    assert ran.out.startswith("3 documents in .nodekin: 2 added, 1 changed, 2 removed\n")
    assert nodekin("search", "withered", "--json").documents == ["docs/tea.md"]
    assert nodekin("search", "Yangtze").status == 1


def test_second_folder_is_added(nodekin, here):
    (here / "more").mkdir()
    (here / "more" / "milk.txt").write_text("Milk is white.", encoding="utf-8")
    nodekin("index", "docs")
    ran = nodekin("index", "more", "--json")
    assert ran.json["documents"] == 4
    assert (ran.json["added"], ran.json["unchanged"]) == (["more/milk.txt"], 3)


def test_only_new_failures_are_reported(nodekin, here):
    (here / "docs" / "old.txt").write_bytes(b"\x81\x20 tea")
    ran = nodekin("index", "docs")
    assert ran.status == 5
    assert "3 documents in .nodekin: 3 added, 1 file left out" in ran.out
    (line,) = ran.err.splitlines()
    assert line.startswith("nodekin: left out: docs/old.txt is not UTF-8")
    assert "register_reader" not in line
    ran = nodekin("index")  # the failure is not new
    assert (ran.status, ran.err) == (0, "nodekin: 1 file was skipped: 1 not text (old.txt)\n")
    assert "3 unchanged, 1 file left out" in ran.out
    (failure,) = nodekin("index", "--json").json["failures"]
    assert (failure["document"], failure["group"]) == ("docs/old.txt", "ROOT")
    (here / "docs" / "older.txt").write_bytes(b"\x81\x20 tea")
    ran = nodekin("index")
    (line,) = ran.err.splitlines()
    assert "older.txt is not UTF-8" in line
    assert ran.status == 5
    assert nodekin("index", "docs", "--rebuild").status == 5


def test_failures_of_one_kind_are_one_line(nodekin, here):
    for number in range(3):
        (here / "docs" / f"{number}.txt").write_bytes(b"\x81\x20 tea")
    for number in range(2):
        (here / "docs" / f"{number}.png").write_bytes(b"\x89PNG")
    ran = nodekin("index", "docs")
    assert "3 added, 5 files left out" in ran.out
    unread, undecodable = ran.err.splitlines()
    assert "2 of the files in docs have no reader (.png 2): 0.png, 1.png" in unread
    assert "docs/0.txt is not UTF-8" in undecodable
    assert undecodable.endswith("; 2 more like this (nodekin status)")
    assert nodekin("status").out.count("is not UTF-8") == 3
    searched = nodekin("search", "tea", "--in", "docs")
    assert len(searched.err.splitlines()) == 2
    assert "nodekin status" not in searched.err


def test_files_without_reader_are_named(nodekin, here):
    (here / "docs" / "picture.png").write_bytes(b"\x89PNG")
    ran = nodekin("index", "docs")
    assert ran.status == 0
    assert "1 of the files in docs has no reader (.png 1): picture.png" in ran.err
    assert ran.err.count("\n") == 1
    again = nodekin("index")
    # Without the extra for files, a remedy follows.
    assert again.err.startswith("nodekin: 1 file was skipped: 1 without a reader (1 .png)")
    assert again.err.count("\n") == 1
    assert "3 unchanged, 1 file left out" in again.out
    assert nodekin("index", "docs", "--quiet", "--rebuild").err == ""


needs_files = pytest.mark.skipif(
    not entry_points(group="nodekin.readers"), reason="the component for files is missing"
)


@needs_files
def test_index_prints_a_line_per_kind_of_note(nodekin, here):
    for number in range(3):
        (here / "docs" / f"{number}.html").write_text("<p>Tea.</p><nav>Home</nav><img src=a>")
    (here / "docs" / "a.json").write_text('{"a": "Tea')
    error = nodekin("index", "docs").err
    lines = [line for line in error.splitlines() if "nodekin status" in line]
    assert sorted(lines) == [
        "nodekin: JSON cut off, read as text in 1 file (nodekin status)",
        "nodekin: menus were left out in 3 files (nodekin status)",
        "nodekin: pictures were left out in 3 files (nodekin status)",
    ]
    assert "was read with changes" not in error


@needs_files
def test_scan_is_told_option_of_command_line(nodekin, here):
    (here / "docs" / "scan.pdf").write_bytes(pdf_of(b"q 200 0 0 200 20 20 cm /I Do Q"))
    error = nodekin("index", "docs").err
    assert "scan.pdf has no text" in error
    assert "give --ocr" in error
    assert "ReadOptions" not in error


def test_folder_inside_indexed_folder(nodekin, here):
    (here / "docs" / "deep").mkdir()
    (here / "docs" / "deep" / "well.txt").write_text("Water.", encoding="utf-8")
    nodekin("index", "docs")
    (here / "docs" / "deep" / "sea.txt").write_text("Salt water.", encoding="utf-8")
    ran = nodekin("index", "docs/deep", "--json")
    assert (ran.status, ran.json["added"]) == (0, ["docs/deep/sea.txt"])
    assert nodekin("status", "--json").json["sources"] == [str(here / "docs")]
    assert "holds" in nodekin("index", ".").err
    assert nodekin("index", ".", "--rebuild").status == 0


def test_missing_source_keeps_documents(nodekin, here):
    nodekin("index", "docs")
    (here / "docs").rename(here / "elsewhere")
    ran = nodekin("index")
    assert ran.status == 5
    assert "is missing" in ran.err
    assert nodekin("search", "Yangtze").status == 0


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["docs", "--embed", "bge-m3"], 4, "OPENAI_BASE_URL"),
        (["docs", "--embed", "sentence-transformers:"], 2, "names no model"),
        ([], 3, "there is no index"),
    ],
)
def test_invalid_index_changes_nothing(nodekin, here, arguments, status, error):
    ran = nodekin("index", *arguments)
    assert ran.status == status
    assert error in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (here / ".nodekin").exists()
    (here / "empty").mkdir()
    ran = nodekin("index", "empty")
    assert (ran.status, "0 documents" in ran.out) == (1, True)


def write_sentences(here):
    lines = "\n\n".join(f"Tea number {n} is green." for n in range(300))
    (here / "docs" / "long.txt").write_text(lines)


def test_estimate_is_printed_before_embedding(nodekin, here, embedding):
    embedding()
    write_sentences(here)
    ran = nodekin("index", "docs", "--embed", "letters")
    (line,) = ran.err.splitlines()
    assert line.startswith("nodekin: embedding 3")
    assert "searches compare words meanwhile, and an interrupted run continues" in line
    assert nodekin("index").err == ""


def test_search_compares_words_while_vectors_are_missing(nodekin, here, embedding):
    embedding(error=KeyboardInterrupt())
    write_sentences(here)
    assert nodekin("index", "docs", "--embed", "letters").status == 130
    ran = nodekin("search", "Yangtze", "--json")  # without a model call
    assert ran.documents == ["docs/river.txt"]
    assert {match["similarity"] for match in ran.json["results"][0]["matches"]} == {"bm25"}
    missing = nodekin("status", "--json").json["missing_embeddings"]
    assert missing > 300
    said = f"{missing} passages and sentences have no embedding yet"
    assert said in ran.err
    assert said in nodekin("status").out
    assert "DefaultRetriever" not in ran.err
    embedding()
    assert nodekin("index").status == 0
    result = nodekin("search", "Yangtze", "--json").json["results"][0]
    assert {match["similarity"] for match in result["matches"]} == {"bm25", "cosine"}
    assert nodekin("status", "--json").json["missing_embeddings"] == 0


def test_watch_updates_index_after_changes(nodekin, here, monkeypatch) -> None:
    def changes(sources, index):
        assert (sources, index.name) == ([here / "docs"], ".nodekin")
        (here / "docs" / "new.md").write_text("White tea is withered.")
        yield
        (here / "docs" / "tea.md").unlink()
        yield

    monkeypatch.setattr(index_command, "changes", changes)
    ran = nodekin("index", "docs", "--watch")
    assert ran.status == 0
    lines = [line.split(": ", 1)[1] for line in ran.out.splitlines() if "documents in" in line]
    assert lines == ["3 added", "1 added, 3 unchanged", "1 removed, 3 unchanged"]
    assert nodekin("search", "withered", "--json").documents == ["docs/new.md"]


def test_changes_yields_after_write(tmp_path: Path) -> None:
    """Write again and again until the change is seen, however long it takes to begin to watch."""
    seen = threading.Event()

    def write() -> None:
        number = 0
        while not seen.wait(0.2):
            number += 1
            (tmp_path / "a.txt").write_text(str(number))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in index_command.changes([tmp_path], tmp_path / ".nodekin"):
            break
    finally:
        seen.set()
        writer.join()
