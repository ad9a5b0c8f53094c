"""Storage of graphs as SQL tables in an SQLite database, either in memory or in a file."""
