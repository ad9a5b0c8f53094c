"""The store of a graph: SQL tables in an SQLite database, in memory or in a file."""
