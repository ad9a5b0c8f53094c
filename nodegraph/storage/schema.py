"""The tables of a graph."""

FORMAT = 1
"""The version of the tables. Files of another version are rejected."""

TABLES = """
-- The last assigned keys, and the number of the state, which grows with every change.
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);

-- Keys grow in the order of arrival. Document 0 stands for the corpus: nodes that were made from
-- a whole group belong to it.
CREATE TABLE documents (key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE);

-- The content of documents. A version is never changed, and is deleted with its last derivation.
CREATE TABLE versions (key INTEGER PRIMARY KEY, metadata BLOB, search_text INTEGER);

-- The texts of versions in pages, so that cutting a node out of a long text reads little of it.
CREATE TABLE pages (
    version INTEGER NOT NULL, number INTEGER NOT NULL, text BLOB NOT NULL,
    PRIMARY KEY (version, number)
);

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

-- The nodes of one group from one document. See Stamp for source, rule and metadata.
CREATE TABLE derivations (
    key INTEGER PRIMARY KEY,
    grp INTEGER NOT NULL,
    document INTEGER NOT NULL,
    version INTEGER,
    source TEXT NOT NULL,
    rule TEXT NOT NULL,
    metadata TEXT NOT NULL,
    revision INTEGER NOT NULL,
    UNIQUE (grp, document)
);
CREATE INDEX derivations_by_document ON derivations (document);
CREATE INDEX derivations_by_revision ON derivations (grp, revision);
CREATE INDEX derivations_by_version ON derivations (version);

-- text: NULL if it is cut out of the version. content: NULL if it equals the text. inherited: the
-- parent's metadata beyond the metadata of the document.
CREATE TABLE nodes (
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    derivation INTEGER NOT NULL,
    place INTEGER NOT NULL,
    parent BLOB,
    text BLOB,
    content BLOB,
    begin INTEGER,
    size INTEGER,
    shift INTEGER,
    metadata BLOB,
    inherited BLOB,
    search_text INTEGER,
    inherited_search_text INTEGER,
    revision INTEGER NOT NULL
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

-- Declarations of searched metadata, each once. Never deleted, since there are few.
CREATE TABLE search_texts (key INTEGER PRIMARY KEY, value BLOB NOT NULL UNIQUE);

-- Cached and kept values: vectors, LLM answers, records of source files.
CREATE TABLE kinds (key INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);
CREATE TABLE kept (
    kind INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (kind, key)
);

INSERT INTO documents (key, id) VALUES (0, {empty});
INSERT INTO node_groups (key, name, size, revision, journaled, rules, built_for)
    VALUES (0, {root}, 0, 0, 0, NULL, 0);
INSERT INTO counters (name, value) VALUES ('state', 0), ('documents', 0), ('versions', 0),
    ('node_groups', 0), ('derivations', 0), ('nodes', 0), ('links', 0), ('search_texts', 0),
    ('kinds', 0);
"""


def statements(tables: str) -> list[str]:
    """Return the statements of ``TABLES`` one by one."""
    lines = [line for line in tables.splitlines() if not line.startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";") if part.strip()]
