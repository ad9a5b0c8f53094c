"""The store in a file against a simple model, under random writes."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import rule
from store_machine import StoreMachine

from nodekin.nodegraph import (
    NodeStore,
)
from nodekin.nodegraph.sqlite import SQLiteStore


class FileMachine(StoreMachine):
    """The same, the file being closed and opened again now and then."""

    def make(self) -> NodeStore:
        self.folder = tempfile.TemporaryDirectory()
        return SQLiteStore(Path(self.folder.name, "graph"))

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = SQLiteStore(Path(self.folder.name, "graph"))

    @rule()
    def compact(self) -> None:
        self.store.compact()

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


TestSQLiteStore = FileMachine.TestCase
TestSQLiteStore.settings = settings(max_examples=25, stateful_step_count=25)
