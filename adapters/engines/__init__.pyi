from .postgres.postgres_store import PostgresStore as PostgresStore
