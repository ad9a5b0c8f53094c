from .base_engine import BaseEngine as BaseEngine
from .index_engine import IndexEngine as IndexEngine
from .index_engine import WordEngine as WordEngine
from .postgres.postgres_store import PostgresStore as PostgresStore
from .store_configuration import store_options as store_options
