import pytest

from nodekin.adapters.cli.exit_status import CommandError
from nodekin.adapters.evaluation.setup_session import open_setups
from nodekin.nodegraph import Document
from nodekin.retrievers.evaluation.setups.setup_file import SetupFile


def _ids(opened):
    return sorted(node.id for node in opened.graph.nodes("ROOT"))


def test_folders_come_before_the_file_s_and_those_before_the_questions_documents(here):
    (here / "more").mkdir()
    (here / "more" / "note.md").write_text("A note.")
    documents = [Document("Tea.", id="own")]
    declared = SetupFile(graph={"source": "more"})
    with open_setups(SetupFile(), quiet=True, documents=documents) as opened:
        assert _ids(opened) == ["own"]
    with open_setups(declared, quiet=True, documents=documents) as opened:
        assert _ids(opened) == ["more/note.md"]
    folders = [here / "docs"]
    with open_setups(declared, folders, quiet=True, documents=documents) as opened:
        assert _ids(opened) == ["docs/river.txt", "docs/tea.md", "docs/茶.md"]


def test_what_can_not_be_read_is_left_out_and_said(here, capsys):
    (here / "docs" / "broken.txt").write_bytes(b"\xff\xfe\xff")
    with open_setups(SetupFile(), [here / "docs"], quiet=False) as opened:
        assert len(_ids(opened)) == 3
    assert "left out" in capsys.readouterr().err


def test_a_folder_that_is_not_there(here):
    with (
        pytest.raises(CommandError, match="no file or folder"),
        open_setups(SetupFile(), [here / "nothing"], quiet=True),
    ):
        pass
