"""The tables of a graph in its schema."""

from __future__ import annotations

_TABLES = """
-- One row. number counts all writes, so that a process knows whether another has written.
CREATE TABLE nodekin_graph (format int NOT NULL, number bigint NOT NULL);
INSERT INTO nodekin_graph VALUES (1, 0);

-- The last transaction of each writer, by which it learns whether a commit whose answer was lost
-- has happened.
CREATE TABLE writers (id bytea PRIMARY KEY, number bigint NOT NULL, seen timestamptz NOT NULL);

-- What one group has from one document; see Stamp for source, rule and metadata. place orders
-- documents.
CREATE TABLE derivations (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    grp bytea NOT NULL,
    document bytea NOT NULL,
    place bigint NOT NULL,
    source bytea NOT NULL,
    rule bytea NOT NULL,
    metadata bytea NOT NULL,
    UNIQUE (grp, document)
);
CREATE INDEX ON derivations (grp, place);

-- What nodes share: inherited metadata and which of it is searched, by its hash.
CREATE TABLE contexts (hash bytea PRIMARY KEY, value bytea NOT NULL);

-- Where content is null it is the text. position orders the nodes of a group.
CREATE TABLE nodes (
    id bytea PRIMARY KEY,
    derivation bigint NOT NULL,
    position bigint NOT NULL,
    parent bytea,
    text bytea NOT NULL,
    content bytea,
    start bigint,
    shift bigint,
    metadata bytea,
    context bytea
);
CREATE INDEX ON nodes (derivation, position);
CREATE INDEX ON nodes (derivation, parent);

CREATE TABLE links (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source bytea NOT NULL,
    target bytea NOT NULL,
    type bytea NOT NULL,
    weight float8 NOT NULL,
    metadata bytea,
    derived boolean NOT NULL,
    UNIQUE (source, target, type)
);
CREATE INDEX ON links (target);

-- Vectors, answers of models, source files: whatever is stored by kind and key.
CREATE TABLE kinds (key int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name bytea UNIQUE NOT NULL);
CREATE TABLE memory (
    kind int NOT NULL REFERENCES kinds ON DELETE CASCADE,
    key bytea NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (kind, key)
);

-- Revisions of groups and their latest changes, which a reader sees as of its snapshot.
CREATE TABLE journal (
    kind bytea NOT NULL, key bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (kind, key)
);
"""

# Where processes built in turns, links could be lost, or stay for good. What was made of a whole
# group, and has links, counts as out of date: the next build compares all of it. The seventh value
# of a group's state is up to which revision it is built.
_COMPARE_LINKS = """
UPDATE derivations SET source = '' WHERE document = '' AND EXISTS (
    SELECT FROM nodes JOIN links ON links.source = nodes.id
    WHERE nodes.derivation = derivations.key AND links.derived
);
UPDATE journal SET value = convert_to(
    jsonb_set(convert_from(value, 'UTF8')::jsonb, '{6}', '0')::text, 'UTF8'
) WHERE kind = 'group' AND key IN (
    SELECT grp FROM derivations WHERE document = '' AND source = ''
);
"""

MIGRATIONS = [_TABLES, _COMPARE_LINKS]
"""What makes tables of version n from those of version n - 1; its length is today's version."""
