"""A graph store that uses a schema of a PostgreSQL database."""
