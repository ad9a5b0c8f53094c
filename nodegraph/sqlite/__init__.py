"""The store that is one SQLite file."""
