"""The file of records."""

from nodekin.retrievers.evaluation.records import Record, RecordFile


def test_added_record_is_on_disk(tmp_path):
    path = tmp_path / "results.jsonl"
    file = RecordFile(path, {"words": "x"})
    for number in range(3):
        file.add(Record("words", str(number), "Which tea?", 5))
        assert len(RecordFile(path, {"words": "x"}).records) == number + 1


def test_incomplete_last_line_is_removed_by_add(tmp_path):
    path = tmp_path / "results.jsonl"
    RecordFile(path, {"words": "x"}).add(Record("words", "1", "Which tea?", 5))
    complete = path.read_bytes()
    path.write_bytes(complete + b'{"setup": "wo')
    file = RecordFile(path, {"words": "x"})
    assert len(file.records) == 1
    assert path.read_bytes() == complete + b'{"setup": "wo'
    file.add(Record("words", "2", "Which cup?", 5))
    file.add(Record("words", "3", "Which pot?", 5))
    assert path.read_bytes().startswith(complete)
    assert [*RecordFile(path, {"words": "x"}).records] == [("words", n) for n in "123"]
