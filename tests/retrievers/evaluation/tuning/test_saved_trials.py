import logging

import pytest

from nodekin.retrievers.evaluation.tuning.setup_search import TrialFile

ABOUT = {"metric": "mrr@5"}


def test_scores_are_there_again(tmp_path):
    path = tmp_path / "trials.jsonl"
    file = TrialFile(path, ABOUT)
    file.add("一", [(1.0, 1.0), None])
    file.add("other", [(0.0, 1.0)])
    file.add("一", [(0.5, 2.0)])
    again = TrialFile(path, ABOUT)
    assert again.scores("一") == [(1.0, 1.0), None, (0.5, 2.0)]
    assert again.scores("unknown") == ()


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "trials.jsonl"
    TrialFile(path, ABOUT).add("one", [(1.0, 1.0)])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"setup": "tw')
    assert TrialFile(path, ABOUT).scores("one") == [(1.0, 1.0)]
    assert path.read_bytes() == whole
    path.write_bytes(b"")
    assert TrialFile(path, ABOUT).scores("one") == ()


def test_another_search_begins_anew_and_another_file_is_refused(tmp_path, caplog):
    path = tmp_path / "trials.jsonl"
    TrialFile(path, ABOUT).add("one", [(1.0, 1.0)])
    with caplog.at_level(logging.WARNING, "nodekin"):
        assert TrialFile(path, {"metric": "map"}).scores("one") == ()
    assert "is of another search, and starts again" in caplog.text
    for text in ('{"question": "my own"}\n', "a letter\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="is no file of nodekin tune"):
            TrialFile(path, ABOUT)
        assert path.read_text(encoding="utf-8") == text


def test_without_a_path_nothing_is_written():
    TrialFile(None, ABOUT).add("one", [None])
