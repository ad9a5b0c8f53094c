"""A store of your own: a graph in any mapping, here a shelf of Python's standard library.

python examples/own_store.py
"""

import shelve
import tempfile
import threading
from contextlib import contextmanager

from nodekin.nodegraph import CORPUS, NodeGraph, NodeStore


class MappingStore(NodeStore):
    """Keeps a graph in a mapping from strings to anything that can be pickled."""

    def __init__(self, data):
        self.data, self.undo, self.lock = data, None, threading.RLock()

    @contextmanager
    def transaction(self):
        with self.lock:
            outer = self.undo
            self.undo = [] if outer is None else outer
            try:
                yield
            except BaseException:
                while outer is None and self.undo:
                    self.data.update([self.undo.pop()])
                raise
            finally:
                self.undo = outer

    def table(self, *name):
        return self.data.get(repr(name)) or {}

    def change(self, *name, put=(), delete=()):
        """Change a table: a dictionary that is stored by its name."""
        with self.transaction():
            table = self.table(*name)
            self.undo.append((repr(name), table))
            stored = {key: value for key, value in table.items() if key not in set(delete)}
            self.data[repr(name)] = {**stored, **dict(put)}

    def stamps(self, group, ids=None):
        stamps = self.table("stamps", group)
        ids = [CORPUS, *self.table("stamps", "ROOT")] if ids is None else ids
        return {i: stamps[i] for i in ids if i in stamps}

    def derivation(self, group, document_id):
        return self.table("derivation", group, document_id).get("value")

    def write_derivations(self, group, derivations, changed):
        for i, new in derivations.items():
            if old := self.derivation(group, i):
                for node in old.nodes:
                    self.change("node", node.id, delete=["value"])
            for node in new.nodes if new else ():
                self.change("node", node.id, put={"value": node})
            self.change("derivation", group, i, put={"value": new})
        stamps = {i: new.stamp for i, new in derivations.items() if new}
        self.change("stamps", group, put=stamps, delete=derivations.keys() - stamps)

    def get(self, ids):
        return [self.table("node", i).get("value") for i in ids]

    def read_links(self, ids, *, incoming=False):
        return [[*self.table("links", incoming, i).values()] for i in ids]

    def put_links(self, links):
        for link in links:
            for incoming, end in enumerate((link.source, link.target)):
                key = (link.source, link.target, link.type)
                self.change("links", bool(incoming), end, put={key: link})

    def delete_links(self, links):
        for link in links:
            for incoming, end in enumerate((link.source, link.target)):
                key = (link.source, link.target, link.type)
                self.change("links", bool(incoming), end, delete=[key])

    def get_values(self, kind, keys=None):
        values = self.table("values", kind)
        return values if keys is None else {key: values[key] for key in keys if key in values}

    def put_values(self, kind, values):
        self.change("values", kind, put=values)
        self.change("kinds", put={kind: True})

    def delete_values(self, kind, keys=None):
        self.change("values", kind, delete=self.get_values(kind) if keys is None else keys)

    def kinds(self):
        return [kind for kind in self.table("kinds") if self.table("values", kind)]


def main() -> None:
    """Keep a graph on a shelf and read it again."""
    split = []

    def split_sentences(text):
        split.append(text)
        return text.split(". ")

    with tempfile.TemporaryDirectory() as folder:
        for session in ("first", "second"):
            with shelve.open(f"{folder}/graph") as shelf:
                graph = NodeGraph(store=MappingStore(shelf), progress=False)
                graph.create_node_group("sentence", split_sentences, version="1")
                graph.add("Tea is a drink. It is made of leaves.")
                print(f"{session} session:", [node.text for node in graph.nodes("sentence")])
    print(f"texts that were split in both sessions: {len(split)}")


if __name__ == "__main__":
    main()
