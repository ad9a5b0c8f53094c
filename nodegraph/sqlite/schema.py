"""The tables of a graph's file, and how an older file becomes a newer one."""

from __future__ import annotations

APPLICATION = 0x6E6F6465
"""What SQLite's ``application_id`` says of a file of ours: "node"."""

_TABLES = """
-- Counts every write, so that a process knows whether another has written.
CREATE TABLE state (number INTEGER NOT NULL);
INSERT INTO state VALUES (0);

-- Keys grow in the order of arrival and are never used again. Document 0 stands for the corpus:
-- what was made from a whole group belongs to it.
CREATE TABLE documents (key INTEGER PRIMARY KEY AUTOINCREMENT, id NOT NULL UNIQUE);
INSERT INTO documents VALUES (0, '');

-- What documents held, unchangeable; kept as long as something that was made from it is.
CREATE TABLE versions (key INTEGER PRIMARY KEY AUTOINCREMENT, metadata);
-- Their texts in pages, so that to cut a node out of a long one reads little of it.
CREATE TABLE pages (key INTEGER PRIMARY KEY, text NOT NULL);

-- sequence and token name the group's revision; rules and built_for the last whole build.
CREATE TABLE groups (
    key INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL DEFAULT 0,
    sequence INTEGER NOT NULL DEFAULT 0,
    token INTEGER NOT NULL DEFAULT 0,
    journaled INTEGER NOT NULL DEFAULT 0,
    rules TEXT,
    built_for INTEGER NOT NULL DEFAULT 0
);
INSERT INTO groups (key, name) VALUES (0, 'ROOT');
CREATE TABLE journal (
    grp INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    token INTEGER NOT NULL,
    size INTEGER NOT NULL,
    removed NOT NULL,
    PRIMARY KEY (grp, sequence)
) WITHOUT ROWID;

-- One group's share of one document; see Stamp for source, rule and metadata.
CREATE TABLE derivations (
    key INTEGER PRIMARY KEY,
    grp INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    version INTEGER REFERENCES versions,
    source TEXT NOT NULL,
    rule TEXT NOT NULL,
    metadata TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    UNIQUE (grp, document)
);
CREATE INDEX derivations_of_document ON derivations (document);
CREATE INDEX derivations_since ON derivations (grp, sequence);
CREATE INDEX derivations_of_version ON derivations (version);

-- Where text is null it is the document's from begin, size characters long; where content is
-- null it is the text; inherited is what the parent's metadata has beyond the document's.
CREATE TABLE nodes (
    key INTEGER PRIMARY KEY,
    id NOT NULL UNIQUE,
    derivation INTEGER NOT NULL REFERENCES derivations ON DELETE CASCADE,
    place INTEGER NOT NULL,
    parent,
    text,
    content,
    begin INTEGER,
    size INTEGER,
    shift INTEGER,
    metadata,
    inherited,
    sequence INTEGER NOT NULL
);
CREATE INDEX nodes_of_parent ON nodes (derivation, parent);

CREATE TABLE links (
    key INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    type TEXT NOT NULL,
    weight REAL NOT NULL,
    metadata,
    made INTEGER NOT NULL,
    UNIQUE (source, target, type)
);
CREATE INDEX links_to ON links (target);

-- Vectors, answers of models, source files: whatever is kept by kind and key.
CREATE TABLE kinds (key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE memory (
    kind INTEGER NOT NULL REFERENCES kinds ON DELETE CASCADE,
    key NOT NULL,
    value BLOB NOT NULL,
    UNIQUE (kind, key)
);
"""

_LINKS_TO_IDS = """
-- A link leads to a node's id. One that a transform derived belongs to what it derived: it stays
-- while its target is away. Others go with their target.
CREATE TABLE newer_links (
    key INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    target NOT NULL,
    type TEXT NOT NULL,
    weight REAL NOT NULL,
    metadata,
    derived INTEGER NOT NULL,
    UNIQUE (source, target, type)
);
INSERT INTO newer_links
    SELECT links.key, links.source, nodes.id, links.type, links.weight, links.metadata, links.made
    FROM links JOIN nodes ON nodes.key = links.target;
DROP TABLE links;
ALTER TABLE newer_links RENAME TO links;
CREATE INDEX links_to ON links (target);
CREATE TRIGGER links_go AFTER DELETE ON nodes BEGIN
    DELETE FROM links WHERE target = OLD.id AND derived = 0;
END;
"""

_SEARCH_TEXTS = """
-- What of the metadata is searched with a text: of a document, of a node's own, of its parent's
-- where that is not the document's (0 for none). Nothing is deleted: there are few.
CREATE TABLE search_texts (key INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE);
ALTER TABLE versions ADD COLUMN search_text INTEGER;
ALTER TABLE nodes ADD COLUMN search_text INTEGER;
ALTER TABLE nodes ADD COLUMN inherited_search_text INTEGER;
"""

_CHECKSUMS = """
-- CRC-32 of the text and of the metadata; null where they were written before there were any.
ALTER TABLE pages ADD COLUMN checksum INTEGER;
ALTER TABLE versions ADD COLUMN checksum INTEGER;
"""

_COMPARE_LINKS = """
-- Where processes built in turns, links could be lost, or stay for good. What was made of a whole
-- group, and has links, counts as out of date: the next build compares all of it.
UPDATE derivations SET source = '' WHERE document = 0 AND EXISTS (
    SELECT 1 FROM nodes JOIN links ON links.source = nodes.key
    WHERE nodes.derivation = derivations.key AND links.derived = 1
);
UPDATE groups SET built_for = 0 WHERE key IN (
    SELECT grp FROM derivations WHERE document = 0 AND source = ''
);
"""

_ROW_CHECKSUMS = """
-- CRC-32 of what is read of a node, with its document and group, and of a link; null where they
-- were written before there were any.
ALTER TABLE nodes ADD COLUMN checksum INTEGER;
ALTER TABLE links ADD COLUMN checksum INTEGER;
"""

MIGRATIONS = [*(_TABLES, _LINKS_TO_IDS, _SEARCH_TEXTS, _CHECKSUMS, _COMPARE_LINKS, _ROW_CHECKSUMS)]
"""What makes a file of version n from one of version n - 1; its length is today's version."""
