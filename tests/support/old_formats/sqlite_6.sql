-- What was written by a nodekin of format 6.
PRAGMA application_id = 1852793957;
PRAGMA user_version = 6;
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
INSERT INTO "derivations" VALUES(1,0,1,1,'03fd72c75616936ede757736','fe34f765f9636ed39e48e0da','fe34f765f9636ed39e48e0da',1);
INSERT INTO "derivations" VALUES(2,0,2,2,'17b6dbbaebc32cd8c3ee9530','a55f62c68ddd440dab3939bc','a55f62c68ddd440dab3939bc',1);
INSERT INTO "derivations" VALUES(3,1,1,1,'833d77d90c01d99f4243a998','057964d5faf1fe7e82c6da96','fe34f765f9636ed39e48e0da',1);
INSERT INTO "derivations" VALUES(4,1,2,2,'27af9a6afb523090bb47dc98','057964d5faf1fe7e82c6da96','a55f62c68ddd440dab3939bc',1);
INSERT INTO "derivations" VALUES(5,2,0,NULL,'b82de70f3f9e5de557e4a35c','f3567a916e7cc7e4decf1640','',1);
CREATE TABLE documents (key INTEGER PRIMARY KEY AUTOINCREMENT, id NOT NULL UNIQUE);
INSERT INTO "documents" VALUES(0,'');
INSERT INTO "documents" VALUES(1,'a');
INSERT INTO "documents" VALUES(2,'b');
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
INSERT INTO "groups" VALUES(0,'ROOT',2,1,901624606,2,NULL,0);
INSERT INTO "groups" VALUES(1,'line',3,1,322924850,3,'ff9f872671b77cb0d9935e4a',5196591902);
INSERT INTO "groups" VALUES(2,'entity',1,1,2178377560,1,'f45e1c63be34e2a23232d25d',5196591902);
CREATE TABLE journal (
    grp INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    token INTEGER NOT NULL,
    size INTEGER NOT NULL,
    removed NOT NULL,
    PRIMARY KEY (grp, sequence)
) WITHOUT ROWID;
INSERT INTO "journal" VALUES(0,1,901624606,2,'[]');
INSERT INTO "journal" VALUES(1,1,322924850,3,'[]');
INSERT INTO "journal" VALUES(2,1,2178377560,1,'[]');
CREATE TABLE kinds (key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE "links" (
    key INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    target NOT NULL,
    type TEXT NOT NULL,
    weight REAL NOT NULL,
    metadata,
    derived INTEGER NOT NULL, checksum INTEGER,
    UNIQUE (source, target, type)
);
INSERT INTO "links" VALUES(1,1,'b','cites',0.5,'{"page":3}',0,3761836007);
INSERT INTO "links" VALUES(2,6,'a','member',1.0,NULL,1,2485072465);
INSERT INTO "links" VALUES(3,6,'b','member',1.0,NULL,1,3347409365);
CREATE TABLE memory (
    kind INTEGER NOT NULL REFERENCES kinds ON DELETE CASCADE,
    key NOT NULL,
    value BLOB NOT NULL,
    UNIQUE (kind, key)
);
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
, search_text INTEGER, inherited_search_text INTEGER, checksum INTEGER);
INSERT INTO "nodes" VALUES(1,'a',1,0,NULL,NULL,NULL,0,40,NULL,NULL,NULL,1,NULL,NULL,3378008310);
INSERT INTO "nodes" VALUES(2,'b',2,0,NULL,NULL,NULL,0,24,NULL,NULL,NULL,1,NULL,NULL,3378341405);
INSERT INTO "nodes" VALUES(3,X'2DCE5B52783A9A04096A4F14',3,0,NULL,NULL,NULL,0,25,0,NULL,NULL,1,NULL,NULL,3846497760);
INSERT INTO "nodes" VALUES(4,X'BE1A0BE21ADA8200C5B90193',3,1,NULL,NULL,NULL,26,14,26,NULL,NULL,1,NULL,NULL,2705820828);
INSERT INTO "nodes" VALUES(5,X'1253BA92A45245BF3749B1AD',4,0,NULL,NULL,NULL,0,24,0,NULL,NULL,1,NULL,NULL,2113030117);
INSERT INTO "nodes" VALUES(6,X'B0A7461C547012F82F7B264C',5,65536,NULL,'Anna',NULL,NULL,NULL,NULL,'{"about":[]}',NULL,1,NULL,NULL,4093539600);
CREATE TABLE pages (key INTEGER PRIMARY KEY, text NOT NULL, checksum INTEGER);
INSERT INTO "pages" VALUES(1048576,'The tea of Anna is green.
Black tea — 茶.',1691498477);
INSERT INTO "pages" VALUES(2097152,'The cup of Anna is cold.',444889315);
CREATE TABLE search_texts (key INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE);
CREATE TABLE state (number INTEGER NOT NULL);
INSERT INTO "state" VALUES(4);
CREATE TABLE versions (key INTEGER PRIMARY KEY AUTOINCREMENT, metadata, search_text INTEGER, checksum INTEGER);
INSERT INTO "versions" VALUES(1,'{"kind":"tea","n":1}',NULL,3130410946);
INSERT INTO "versions" VALUES(2,NULL,NULL,0);
CREATE INDEX derivations_of_document ON derivations (document);
CREATE INDEX derivations_since ON derivations (grp, sequence);
CREATE INDEX derivations_of_version ON derivations (version);
CREATE INDEX nodes_of_parent ON nodes (derivation, parent);
CREATE INDEX links_to ON links (target);
CREATE TRIGGER links_go AFTER DELETE ON nodes BEGIN
    DELETE FROM links WHERE target = OLD.id AND derived = 0;
END;
