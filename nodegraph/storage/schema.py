"""The tables of a graph."""

FORMAT = 1
"""The version of the tables. Files of another version are rejected."""

TABLES = """
-- The last assigned keys, and the number of the state, which grows with every change.
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);

-- Keys grow in the order of arrival. Document 0 stands for the corpus: nodes that were made from
-- a whole group belong to it.
CREATE TABLE documents (key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE);

-- rules and built_for describe the last complete build. journaled counts the ids in the journal.
CREATE TABLE node_groups (
    key INTEGER PRIMARY KEY,
    name BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    journaled INTEGER NOT NULL,
    rules TEXT,
    built_for INTEGER NOT NULL
);

-- One row per revision of a group, with the ids of the removed nodes. Nodes and derivations have
-- the revision of their last change.
CREATE TABLE journal (
    grp INTEGER NOT NULL, revision INTEGER NOT NULL, removed BLOB NOT NULL,
    PRIMARY KEY (grp, revision)
);

-- The nodes of one group from one document. See Stamp for source, rule and metadata. fields and
-- search_text are those of the document at that time.
CREATE TABLE derivations (
    key INTEGER PRIMARY KEY,
    grp INTEGER NOT NULL,
    document INTEGER NOT NULL,
    source TEXT NOT NULL,
    rule TEXT NOT NULL,
    metadata TEXT NOT NULL,
    revision INTEGER NOT NULL,
    fields BLOB,
    search_text BLOB,
    UNIQUE (grp, document)
);
CREATE INDEX derivations_by_document ON derivations (document);
CREATE INDEX derivations_by_revision ON derivations (grp, revision);

-- content: NULL if it equals the text. inherited: the parent's metadata beyond the metadata of the
-- document. The text comes last, so that the other columns are read without it.
CREATE TABLE nodes (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    derivation INTEGER NOT NULL,
    place INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    parent BLOB,
    begin INTEGER,
    shift INTEGER,
    metadata BLOB,
    inherited BLOB,
    search_text BLOB,
    inherited_search_text BLOB,
    content BLOB,
    text BLOB NOT NULL
);
CREATE INDEX nodes_by_place ON nodes (derivation, place);
CREATE INDEX nodes_by_parent ON nodes (derivation, parent);

CREATE TABLE links (
    key INTEGER PRIMARY KEY,
    source BLOB NOT NULL,
    target BLOB NOT NULL,
    type BLOB NOT NULL,
    weight REAL NOT NULL,
    metadata BLOB,
    derived INTEGER NOT NULL,
    UNIQUE (source, target, type)
);
CREATE INDEX links_by_target ON links (target);

-- Cached and kept values: vectors, LLM answers, records of source files.
CREATE TABLE kinds (key INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);
CREATE TABLE kept (
    kind INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (kind, key)
);

INSERT INTO documents (key, id) VALUES (0, {empty});
INSERT INTO node_groups (key, name, size, revision, journaled, rules, built_for)
    VALUES (0, {root}, 0, 0, 0, NULL, 0);
INSERT INTO counters (name, value) VALUES ('state', 0), ('documents', 0), ('node_groups', 0),
    ('derivations', 0), ('nodes', 0), ('links', 0), ('kinds', 0);
"""


def statements(tables: str) -> list[str]:
    """Return the statements of ``TABLES`` one by one."""
    lines = [line for line in tables.splitlines() if not line.startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";") if part.strip()]
