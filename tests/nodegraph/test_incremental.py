"""After any changes, a graph equals a graph that is built from the same documents."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import rule
from support.graph_edits import GraphEdits
from support.stress import amount

TestIncremental = GraphEdits.TestCase
TestIncremental.settings = settings(max_examples=amount(20, 60), stateful_step_count=25)


class EditsInFile(GraphEdits):
    """Changes of a graph in a file that is sometimes reopened."""

    def place(self) -> Path:
        if not hasattr(self, "folder"):
            self.folder = tempfile.TemporaryDirectory()
        return Path(self.folder.name, "graph")

    @rule()
    def open_again(self) -> None:
        self.graph.close()
        self.graph = self.new(self.place())

    def teardown(self) -> None:
        self.graph.close()
        self.folder.cleanup()


TestIncrementalInFile = EditsInFile.TestCase
TestIncrementalInFile.settings = settings(max_examples=amount(8, 25), stateful_step_count=25)
