"""The file of what set-ups returned: what is on the disk when."""

from nodekin.retrievers.evaluation import records
from nodekin.retrievers.evaluation.records import Record, RecordFile


def test_lines_are_on_disk_a_second_later_and_all_when_it_ends(tmp_path, monkeypatch):
    path, now = tmp_path / "results.jsonl", 100.0
    monkeypatch.setattr(records.time, "monotonic", lambda: now)

    def on_disk():
        return len(RecordFile(path, {"words": "x"}).records)

    with RecordFile(path, {"words": "x"}) as file:
        for number in range(6):
            file.add(Record("words", str(number), "Which tea?", 5))
            now += 0.4
            # The first is written at once, those of a second together.
            assert on_disk() == {0: 1, 1: 1, 2: 1, 3: 4, 4: 4, 5: 4}[number]
    assert on_disk() == 6


def test_an_error_of_the_evaluation_loses_no_line(tmp_path):
    path = tmp_path / "results.jsonl"
    try:
        with RecordFile(path, {"words": "x"}) as file:
            for number in range(3):
                file.add(Record("words", str(number), "Which tea?", 5))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert len(RecordFile(path, {"words": "x"}).records) == 3
