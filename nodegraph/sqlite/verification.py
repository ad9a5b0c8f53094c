"""Compare a graph's file with its checksums, and let what was derived be derived again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from ..errors import StoreError
from ..journal import TOKENS
from ..node import ROOT
from ..store import LASTING_KINDS
from .connection import Connection, Row, checksum, is_intact, row_checksum
from .tables import LINK, NODE, from_key, to_column, to_key

_KEY_SIZE = 12  # bytes of an id of ours; other bytes are longer

_MOST_CHANGES = 1 << 31  # above which a number of changes or of a version is damaged

_NODE = NODE.replace("SELECT", "SELECT n.derivation, n.key,", 1)

_EMPTY = "NOT EXISTS (SELECT 1 FROM nodes WHERE derivation = derivations.key)"

_SOURCELESS = "source NOT IN (SELECT key FROM nodes)"

_TARGETLESS = "NOT derived AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = target)"

_OWNERLESS = (
    "(grp NOT IN (SELECT key FROM groups) OR document NOT IN (SELECT key FROM documents)) "
    f"AND {_EMPTY}"
)


class Verification:
    """Look for damage in a file, in a transaction; ``run`` returns what is damaged.

    Of groups in which something is damaged all is compared by their next build. It writes nodes
    by their ids, wherever a damaged row has them.

    Args:
        db: The connection that writes.
        is_readable: Whether the document of a row of ``NODE`` is as it was written.
    """

    def __init__(self, db: Connection, is_readable: Callable[[Row], bool]) -> None:
        self._db = db
        self._is_readable = is_readable
        self._again: set[str] = set()  # groups to be compared

    def run(self) -> list[str]:
        """Return what is damaged, one sentence each."""
        damaged = self._db.faults()
        if damaged:
            self._db.run("REINDEX")
        with self._db.lenient():
            damaged += [*self._documents(), *self._names(), *self._owners(), *self._stamps()]
            damaged += [*self._nodes(), *self._links(), *self._groups(), *self._values()]
        return damaged

    def _documents(self) -> Iterator[str]:
        """Mend ids of documents, each of which its node has as well."""
        rows = self._db.stream(f"{_NODE} WHERE d.grp = 0")
        for _, node, *row in [row for row in rows if not is_intact(tuple(row[2:]))]:
            for place, source, table, key in (12, 0, "documents", row[11]), (0, 12, "nodes", node):
                if isinstance(name := _name(row[source]), str):
                    stored = to_column(name) if place else to_key(name)
                    if is_intact((*row[:place], stored, *row[place + 1 :])):
                        yield f"document {name!r} had the id {_name(row[place])!r}"
                        self._db.run(
                            f"UPDATE OR IGNORE {table} SET id = ? WHERE key = ?", [stored, key]
                        )

    def _names(self) -> Iterator[str]:
        for key, name in self._db.rows("SELECT key, name FROM groups"):
            if key == 0 and name != ROOT:
                yield f"the group of documents has the name {name!r}"
                self._db.run("UPDATE groups SET name = ? WHERE key = 0", [ROOT])
            elif not isinstance(name, str):
                yield f"a group has the name {name!r}"
                self._db.run("DELETE FROM groups WHERE key = ?", [key])
            elif key and not self._has_its_name(key):
                yield f"group {name!r} has no node that is what was written, and is deleted"
                self._db.run("DELETE FROM groups WHERE key = ?", [key])
                self._compare_all()

    def _has_its_name(self, group: int) -> bool:
        """Tell whether a node of a group, if it has any, has the group's name in its checksum."""
        rows = self._db.stream(f"{NODE} WHERE d.grp = ?", [group])
        first = next(rows, None)
        return first is None or is_intact(first) or any(map(is_intact, rows))

    def _compare_all(self) -> None:
        self._again.update(name for (name,) in self._db.rows("SELECT name FROM groups"))
        self._again.discard(ROOT)

    def _owners(self) -> Iterator[str]:
        """Name rows without the row that they belong to; delete those that nothing is lost with."""
        self._db.run(f"DELETE FROM derivations WHERE {_OWNERLESS}")
        for target, kind, derived in self._db.rows(
            f"SELECT target, type, derived FROM links WHERE {_SOURCELESS}"
        ):
            link = f"a link to {_name(target)!r}, type {kind!r:.80}, has lost its node"
            yield link if derived else f"{link}, and is deleted; link them again"
            self._compare_all()
        self._db.run(f"DELETE FROM links WHERE {_SOURCELESS}")
        for table, key, owner, _ in self._db.rows("PRAGMA foreign_key_check"):
            yield f"row {key} of {table!r} belongs to no row of {owner!r}"
            self._compare_all()
        for (name,) in self._db.rows(
            "SELECT documents.id FROM derivations JOIN documents ON documents.key = document "
            f"WHERE grp = 0 AND {_EMPTY}"
        ):
            yield f"document {_name(name)!r} is lost; add it again"
        self._db.run(f"UPDATE derivations SET rule = '' WHERE grp = 0 AND {_EMPTY}")
        self._db.run("DELETE FROM journal WHERE grp NOT IN (SELECT key FROM groups)")

    def _stamps(self) -> Iterator[str]:
        stamps = "SELECT key, version, sequence, source, rule, metadata FROM derivations"
        for key, version, sequence, *texts in self._db.rows(stamps):
            if version is not None and not (isinstance(version, int) and version < _MOST_CHANGES):
                self._db.run("UPDATE derivations SET version = NULL WHERE key = ?", [key])
            elif isinstance(sequence, int) and all(isinstance(text, str) for text in texts):
                continue
            yield f"row {key} of 'derivations' is not what was written"
            new = "source = '', rule = '', metadata = '', sequence = 0"
            self._db.run(f"UPDATE derivations SET {new} WHERE key = ?", [key])
            self._compare_all()

    def _nodes(self) -> Iterator[str]:
        """Name damaged nodes, and let those that were derived be compared."""
        derivations = set[int]()
        rows = self._db.stream(_NODE)
        for derivation, _, *row in [row for row in rows if not self._is_whole(tuple(row[2:]))]:
            yield damaged_node(tuple(row))
            if row[13] == ROOT:  # with another stamp it is read from its source again
                self._db.run("UPDATE derivations SET rule = '' WHERE key = ?", [derivation])
            else:
                self._again.add(row[13])
                derivations.add(derivation)
        for derivation in derivations:
            self._empty(derivation)

    def _is_whole(self, row: Row) -> bool:
        return is_intact(row) and self._is_readable(row)

    def _empty(self, derivation: int) -> None:
        """Let the nodes of a derivation be read without an error, without what they hold."""
        self._db.run("UPDATE derivations SET version = NULL WHERE key = ?", [derivation])
        query = f"{_NODE} WHERE n.derivation = ? ORDER BY n.key"
        for place, (_, key, node_id, *_) in enumerate(self._db.rows(query, [derivation])):
            self._db.run(
                "UPDATE nodes SET text = '', content = NULL, begin = NULL, size = NULL, "
                "shift = NULL, metadata = NULL, inherited = NULL, parent = NULL, "
                "search_text = NULL, inherited_search_text = NULL, place = ?, id = ? WHERE key = ?",
                [place, node_id if _is_id(node_id) else random.randbytes(_KEY_SIZE), key],
            )
            ((_, _, *new, _),) = self._db.rows(f"{_NODE} WHERE n.key = ?", [key])
            self._db.run("UPDATE nodes SET checksum = ? WHERE key = ?", [row_checksum(*new), key])

    def _links(self) -> Iterator[str]:
        """Delete damaged links: those that were derived come back, others are named."""
        rows = self._db.stream(
            f"SELECT links.key, {_TARGETLESS}, {LINK} FROM links "
            "JOIN nodes s ON s.key = links.source"
        )
        lost = [row for row in rows if row[1] or not is_intact(tuple(row[2:]))]
        for key, _, source, target, kind, *_, derived, _ in lost:
            link = f"a link of node {_name(source)!r}"
            if derived:
                yield f"{link} is not what was written"
            else:
                yield (
                    f"{link} to {_name(target)!r}, type {kind!r:.80}, is not what was written, and "
                    "is deleted; link them again"
                )
            self._db.run("DELETE FROM links WHERE key = ?", [key])
            self._compare_all()

    def _groups(self) -> Iterator[str]:
        """Give a new revision to groups that are to be compared: nobody has read it yet."""
        sizes: dict[int, int] = dict(
            self._db.rows(
                "SELECT d.grp, count(*) FROM nodes n JOIN derivations d ON d.key = n.derivation "
                "JOIN documents ON documents.key = d.document GROUP BY d.grp"
            )
        )
        newest = -1
        for key, name, size, rules, *numbers in self._db.rows(
            "SELECT key, name, size, rules, sequence, token, journaled, built_for FROM groups "
            "ORDER BY key"
        ):
            sequence, token, _, built_for = numbers
            is_counted = all(isinstance(number, int) and number >= 0 for number in numbers)
            if not is_counted or not isinstance(rules, str | None) or sequence > _MOST_CHANGES:
                yield f"group {name!r} has no revision"
            elif size != sizes.get(key, 0):
                yield f"group {name!r} has {sizes.get(key, 0)} nodes of {size} in it"
            elif newest >= 0 and built_for > newest:
                yield f"group {name!r} was built of documents that came later"
            elif name not in self._again:
                newest = max(newest, sequence * TOKENS + token) if key == 0 else newest
                continue
            if key == 0:
                self._compare_all()
            sequence = sequence + 1 if is_counted and sequence < _MOST_CHANGES else 1
            token = random.randrange(TOKENS)
            state = [sizes.get(key, 0), sequence, token, key]
            self._db.run("DELETE FROM journal WHERE grp = ?", [key])
            self._db.run("INSERT INTO journal VALUES (?, ?, ?, 1, '[]')", [key, sequence, token])
            self._db.run(
                "UPDATE groups SET size = ?, sequence = ?, token = ?, journaled = 1, "
                "rules = NULL, built_for = 0 WHERE key = ?",
                state,
            )
            stamps = "UPDATE derivations SET source = '', rule = '' WHERE grp = ? AND grp != 0"
            self._db.run(stamps, [key])

    def _values(self) -> Iterator[str]:
        """Delete the values that are not what was written, but for those of ``LASTING_KINDS``."""
        rows = self._db.stream(
            "SELECT kinds.name, memory.rowid, memory.key, value, checksum FROM memory "
            "JOIN kinds ON kinds.key = memory.kind"
        )
        values = [row[:2] for row in rows if row[4] != checksum(row[3], checksum(row[2], 0))]
        for kind, key in values:
            yield f"a value of {kind!r} is not what was written"
            if not str(kind).startswith(LASTING_KINDS):
                self._db.run("DELETE FROM memory WHERE rowid = ?", [key])


def damaged_node(row: Row) -> str:
    """Say which row of ``NODE`` is damaged."""
    return (
        f"node {_name(row[0])!r} of group {row[13]!r}, document {_name(row[12])!r}, is not what "
        "was written"
    )


def _is_id(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, bytes) and len(value) >= _KEY_SIZE)


def _name(value: bytes | str) -> object:
    try:
        return from_key(value)
    except (StoreError, UnicodeDecodeError):
        return value
