"""The store that is a schema of a PostgreSQL database."""
