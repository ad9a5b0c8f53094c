"""Random writes to a store, compared with the same writes to a store in memory."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from nodekin.nodegraph import CORPUS, ROOT, Document, Link, MemoryStore, Node, NodeStore
from nodekin.nodegraph.derivation import Amendment, Derivation, Stamp
from nodekin.nodegraph.node import MEMBER
from nodekin.nodegraph.search_text import SearchText

_GROUPS = (ROOT, "word", "topic")  # "topic" is made from all documents together

_KINDS = ("check a", "check b")

_IDS = ("a", "b/c.txt", "d e", "河'\"%_", "\ud800")

_TEXTS = ("one two", "", "two three four", "茶 \ud83c \0 x", "one " * 9_000)

_WORDS = ("one", "two", "three", "茶", "\ud83c", "four")

_MANY = 2_500  # more ids than one statement of a database may have

Rows = dict[str, Any]  # what a store returns, by the call


def check_store(
    make: Callable[[], NodeStore],
    *,
    reopen: Callable[[NodeStore], NodeStore] | None = None,
    steps: int = 150,
) -> None:
    """Check reads, revisions, changes, links, transactions, reopening, many ids and threads."""
    check = _StoreCheck(make(), reopen, random.Random(7))
    check.compare("nothing was written")
    for _ in range(steps):
        check.step()
    check.check_refused_writes()
    check.check_many()
    check.check_threads()
    check.store.close()


class _Undone(Exception):
    """Raised to have a transaction undone."""


class _StoreCheck:
    """A store, and the store in memory that has had the same writes."""

    def __init__(
        self,
        store: NodeStore,
        reopen: Callable[[NodeStore], NodeStore] | None,
        rng: random.Random,
    ) -> None:
        self.store = store
        self.expected: NodeStore = MemoryStore()
        self.reopen = reopen
        self.rng = rng
        self.copies: dict[str, list[tuple[int, Rows]]] = {group: [] for group in _GROUPS}

    def step(self) -> None:
        kind = self.rng.random()
        if kind < 0.1:
            with self.undone_transaction():
                write = self.random_write()
                write(self.store)
                self.random_write()(self.store)
            self.compare("a transaction that raised")
        elif kind < 0.2 and self.reopen is not None:
            revisions = [self.store.revision(group) for group in _GROUPS]
            self.store.close()
            self.store = self.reopen(self.store)
            self.compare("the store was reopened")
            again = [self.store.revision(group) for group in _GROUPS]
            _check_equal(again, revisions, "revisions after the store was reopened")
        elif kind < 0.3:
            name = self.rng.choice(("close", "compact"))
            getattr(self.store, name)()
            self.compare(f"{name}()")
        else:
            write = self.random_write()
            with self.store.snapshot() as before:
                pass
            state = self.expected_state()
            with _explained(write.__doc__ or ""):
                write(self.store)
            write(self.expected)
            self.compare(write.__doc__ or "")
            with self.store.snapshot() as after:
                changed = state != self.expected_state()
                assert not changed or before != after, f"{write.__doc__}: snapshot()"

    def expected_state(self) -> int:
        with self.expected.snapshot() as number:
            return number

    @contextmanager
    def undone_transaction(self) -> Iterator[None]:
        revisions = [self.store.revision(group) for group in _GROUPS]
        try:
            with self.store.transaction():
                yield
                raise _Undone
        except _Undone:
            pass
        else:
            raise AssertionError("transaction() doesn't pass on an exception")
        again = [self.store.revision(group) for group in _GROUPS]
        _check_equal(again, revisions, "revisions after a transaction that raised")

    # Writes

    def random_write(self) -> Callable[[NodeStore], None]:
        """Return a function that makes one write, with its description as the docstring."""
        rng = self.rng
        writes = [
            self.put_documents,
            self.put_documents,
            self.remove_documents,
            self.derive_words,
            self.derive_words,
            self.derive_words,
            self.derive_topics,
            self.amend_topics,
            self.amend_topics,
            self.put_links,
            self.put_links,
            self.delete_links,
            self.write_values,
            self.write_values,
            self.write_values,
            self.mark_built,
        ]
        description, write = rng.choice(writes)()

        def run(store: NodeStore) -> None:
            write(store)

        run.__doc__ = description
        return run

    def put_documents(self) -> tuple[str, Callable[[NodeStore], None]]:
        rng = self.rng
        documents = [
            Document(
                rng.choice(_TEXTS),
                {"n": rng.randrange(2), "tags": ["x"]},
                id=i,
                search_text=rng.choice((None, False, "n")),
            )
            for i in rng.sample(_IDS, rng.randint(1, 3))
        ]
        return (
            f"change_documents({[d.id for d in documents]})",
            lambda store: store.change_documents(documents),
        )

    def remove_documents(self) -> tuple[str, Callable[[NodeStore], None]]:
        ids = [*self.rng.sample(_IDS, 1), "never"]
        put = [Document("again", id=i) for i in ids if self.rng.random() < 0.2]
        return (
            f"change_documents({[d.id for d in put]}, remove={ids})",
            lambda store: store.change_documents(put, ids),
        )

    def derive_words(self) -> tuple[str, Callable[[NodeStore], None]]:
        """Derive nodes from some documents, two for each of up to three parents."""
        rng = self.rng
        ids = rng.sample(self.expected.document_ids(), min(2, self.expected.count(ROOT)))
        words = {i: rng.sample(_WORDS, rng.randint(0, len(_WORDS))) for i in ids}
        version, target = rng.randrange(2), rng.choice(_WORDS)

        def write(store: NodeStore) -> None:
            roots = [root for root in store.get(ids) if root is not None]
            derivations = {r.id: _derive_words(r, words[r.id], version, target) for r in roots}
            store.check([node for d in derivations.values() for node in d.nodes])
            store.put_derivations("word", derivations)

        return f"put_derivations('word', {words})", write

    def derive_topics(self) -> tuple[str, Callable[[NodeStore], None]]:
        texts = self.rng.sample(_WORDS, 2)
        nodes = tuple(
            Node(text, id=f"topic {text}", group="topic", order=at) for at, text in enumerate(texts)
        )
        links = [Link(node.id, i, MEMBER, derived=True) for node in nodes for i in _IDS[:2]]
        derivation = Derivation(ascii(texts), "rule", "", nodes, links)
        return (
            f"put_derivations('topic', of the corpus: {texts})",
            lambda store: store.put_derivations("topic", {CORPUS: derivation}),
        )

    def amend_topics(self) -> tuple[str, Callable[[NodeStore], None]]:
        """Change some nodes and links that were made of the corpus."""
        rng = self.rng
        texts, gone = rng.sample(_WORDS, 2), rng.sample(_WORDS, 2)
        metadata, target = {"about": [rng.randrange(3)]}, rng.choice(_IDS)

        def write(store: NodeStore) -> None:
            old = store.derivation("topic", CORPUS)
            existing = () if old is None else old.nodes
            removed = [node.id for node in existing if node.text in gone and node.text not in texts]
            nodes = [
                Node(
                    text,
                    metadata,
                    id=f"topic {text}",
                    group="topic",
                    order=10 * (_WORDS.index(text) + 1),
                )
                for text in texts
            ]
            links = [Link(node.id, target, MEMBER, derived=True) for node in nodes]
            stale = [
                link
                for link in (() if old is None else old.links)
                if link.source not in removed and link.target != target
            ]
            stamp = Stamp(ascii([texts, gone]), "rule", "")
            store.amend("topic", CORPUS, Amendment(stamp, removed, nodes, stale, links))

        return f"amend('topic', of the corpus: {texts}, without {gone})", write

    def put_links(self) -> tuple[str, Callable[[NodeStore], None]]:
        ids = [node.id for group in _GROUPS for node in self.expected.nodes(group)]
        links = [
            Link(self.rng.choice(ids), self.rng.choice(ids), self.rng.choice("rs"), n / 2, {"n": n})
            for n in range(3 if ids else 0)
        ]

        def write(store: NodeStore) -> None:  # an earlier write of a transaction may delete nodes
            ends = {node.id for node in store.get(ids) if node is not None}
            store.link([link for link in links if {link.source, link.target} <= ends])

        return f"link({links})", write

    def delete_links(self) -> tuple[str, Callable[[NodeStore], None]]:
        links = [
            *(link for links in self.expected.links(_IDS) for link in links[:1]),
            Link("never", "there"),
        ]
        return f"unlink({links})", lambda store: store.unlink(links)

    def write_values(self) -> tuple[str, Callable[[NodeStore], None]]:
        kind, keys = self.rng.choice(_KINDS), self.rng.sample(_IDS, 3)
        if self.rng.random() < 0.4:
            batch = self.rng.choice((None, keys))
            return f"delete_values({kind!r}, {batch})", lambda s: s.delete_values(kind, batch)
        values = {key: self.rng.randbytes(5) for key in keys}
        return f"put_values({kind!r}, {values})", lambda store: store.put_values(kind, values)

    def mark_built(self) -> tuple[str, Callable[[NodeStore], None]]:
        group, number = self.rng.choice(_GROUPS[1:]), self.rng.randrange(1 << 60)
        return (
            f"mark_built({group!r}, 'rules', {number})",
            lambda store: store.mark_built(group, "rules", number),
        )

    # Comparisons

    def compare(self, what: str) -> None:
        where = f"after {what:.200}: "
        with _explained(f"{where}a method that reads"), self.store.snapshot():
            got = _read(self.store)
        for call, value in _read(self.expected).items():
            _check_equal(got[call], value, f"{where}{call}")
        for group in _GROUPS:
            self.check_changes(group, where)

    def check_changes(self, group: str, where: str) -> None:
        """Bring copies of a group up to date, as an index does."""
        nodes = {node.id: _row(node) for node in self.store.nodes(group)}
        orders = [node.order for node in self.store.nodes(group)]
        assert orders == sorted(set(orders)), f"{where}orders of {group!r}"
        revision = self.store.revision(group)
        copies = self.copies[group]
        for since, copy in [(0, {}), *copies]:
            changes = self.store.changes(group, since)
            call = f"{where}changes({group!r}, {since})"
            _check_equal(changes.revision, revision, f"{call}.revision beside revision({group!r})")
            assert revision >= since, f"{where}revision of {group!r}"
            copy = {} if changes.complete else dict(copy)
            for i in changes.removed:
                copy.pop(i, None)
            copy.update((node.id, _row(node)) for node in changes.added)
            _check_equal(copy, nodes, f"{call} brings a copy to")
        if not copies or copies[-1][0] != revision:
            copies.append((revision, nodes))
            del copies[: -min(len(copies), 4)]

    # The other checks

    def check_refused_writes(self) -> None:
        document = Document("one two", id="a")
        for store in (self.store, self.expected):
            store.change_documents([document])
        links = [Link("a", "a", "r"), Link("a", "unknown", "r")]
        derivations = {"unknown": Derivation("", "", "", ())}
        writes: dict[str, Callable[[], None]] = {
            "link() to a node that doesn't exist": lambda: self.store.link(links),
            "put_derivations() of a document that doesn't exist": (
                lambda: self.store.put_derivations("word", derivations)
            ),
        }
        for call, write in writes.items():
            try:
                write()
            except LookupError:
                self.compare(call)
            else:
                raise AssertionError(f"{call}: no LookupError was raised")

    def check_many(self) -> None:
        ids = [f"many {n}" for n in range(_MANY)]
        values = {i: i.encode() for i in ids}
        with _explained(f"a write of {_MANY} documents, values and links"):
            for store in (self.store, self.expected):
                store.change_documents([Document(i, id=i) for i in ids])
                store.put_values("check a", values)
                store.link([Link(i, ids[0], "many") for i in ids])
        texts = [node.text if node else None for node in self.store.get(ids)]
        _check_equal(texts, ids, f"get() of {_MANY} ids")
        _check_equal(list(self.store.stamps(ROOT, ids)), ids, f"stamps() of {_MANY} ids")
        _check_equal(self.store.get_values("check a", ids), values, f"get_values() of {_MANY} keys")
        sizes = [len(links) for links in self.store.links(ids)]
        _check_equal(sizes, [1] * _MANY, f"the numbers of links() of {_MANY} ids")
        for store in (self.store, self.expected):
            store.delete_values("check a", ids)
            store.change_documents([], remove=ids)
            store.put_values("check b", values)
            store.delete_values("check b")
        self.compare(f"{_MANY} documents and values were added and removed")

    def check_threads(self) -> None:
        expected = _read(self.expected)

        def read(number: int) -> None:
            for attempt in range(5):
                key = f"{number} {attempt}"
                self.store.put_values("check threads", {key: key.encode()})
                with self.store.snapshot():
                    got = _read(self.store)
                for call, value in expected.items():
                    _check_equal(got[call], value, f"in a thread: {call}")

        with ThreadPoolExecutor(4) as pool:
            for future in [pool.submit(read, number) for number in range(4)]:
                future.result()
        keys = {f"{number} {attempt}" for number in range(4) for attempt in range(5)}
        stored = self.store.get_values("check threads")
        _check_equal(set(stored), keys, "the keys of values that were put by four threads")


@contextmanager
def _explained(call: str) -> Iterator[None]:
    """Turn what a store raises into an error that says by which call."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{call:.200} raised {type(error).__name__}: {error}") from error


def _derive_words(root: Node, words: Sequence[str], version: int, target: str) -> Derivation:
    nodes = tuple(
        Node(
            word,
            {"version": version, "pair": [at, None]},
            {"word": word} if at == 1 else None,
            start=at if at % 2 else None,
            end=at + len(word) if at % 2 else None,
            id=f"{root.id} {word}",
            group="word",
            document_id=root.id,
            parent_id=root.id if at < 2 else f"{root.id}:{at // 2}",
            offset=at,
            order=root.order + at,
            inherited=root.own_metadata,
            search_text=SearchText("word") if at == 2 else None,
            inherited_search_text=SearchText("pair") if at == 1 else root.search_text,
        )
        for at, word in enumerate(words)
    )
    links = [Link(node.id, f"{_IDS[0]} {target}", "derived", derived=True) for node in nodes[:2]]
    return Derivation(ascii(words), "rule", str(version), nodes, links)


def _row(node: Node) -> tuple[object, ...]:
    return (
        *(node.text, node.content, dict(node.own_metadata), dict(node.inherited)),
        *(node.group, node.document_id, node.parent_id, node.start, node.end, node.offset),
        *(node.search_text, node.inherited_search_text),
    )


def _link_row(link: Link) -> tuple[object, ...]:
    key = (link.source, link.target, link.type)
    return (*key, link.weight, dict(link.metadata), link.derived)


def _read(store: NodeStore) -> Rows:
    """Call every method that reads; return what it returned, by the call."""
    ids = [*_IDS, "never", *(f"{i} {word}" for i in _IDS for word in _WORDS)]
    ids += [f"topic {word}" for word in _WORDS]
    rows: Rows = {
        "document_ids()": list(store.document_ids()),
        "groups()": sorted(store.groups()),
        "get(ids)": [node and (node.id, *_row(node)) for node in store.get(ids)],
        "parent_ids(ids)": sorted(store.parent_ids(ids).items()),
        "kinds()": sorted(kind for kind in store.kinds() if kind in _KINDS),
    }
    for kind in _KINDS:
        rows[f"get_values({kind!r})"] = dict(store.get_values(kind))
        rows[f"get_values({kind!r}, ids)"] = dict(store.get_values(kind, ids[:3]))
    for incoming in (False, True):
        links = store.links(ids, incoming=incoming)
        rows[f"links(ids, incoming={incoming})"] = [
            [_link_row(k) for k in batch] for batch in links
        ]
    for group in _GROUPS:
        nodes = list(store.nodes(group))
        rows[f"count({group!r})"] = store.count(group)
        rows[f"nodes({group!r})"] = [(node.id, *_row(node)) for node in nodes]
        rows[f"stamps({group!r})"] = list(store.stamps(group).items())
        batch = store.stamps(group, [*_IDS[:2], "never"])
        rows[f"stamps({group!r}, ids)"] = dict(batch)
        rows[f"built({group!r})"] = store.built(group)
        for document_id in (CORPUS, *_IDS):
            derivation = store.derivation(group, document_id)
            rows[f"derivation({group!r}, {document_id!r})"] = derivation and (
                derivation.stamp,
                [(node.id, *_row(node)) for node in derivation.nodes],
                sorted(map(_link_row, derivation.links), key=repr),
            )
    for document_id in _IDS:
        for parent_id in (document_id, f"{document_id}:1"):
            parent = Node("", id=parent_id, document_id=document_id)
            children = [node.id for node in store.children("word", parent)]
            rows[f"children('word', {parent_id!r})"] = children
    return rows


def _check_equal(got: Any, expected: Any, call: str) -> None:
    if isinstance(got, Mapping) and isinstance(expected, Mapping):
        keys = [key for key in {**got, **expected} if got.get(key) != expected.get(key)]
        got, expected = {k: got.get(k) for k in keys}, {k: expected.get(k) for k in keys}
    assert got == expected, call
