"""The proof uses the databases of the tests."""

from tests.conftest import postgres_schema_url, postgres_url, sqlite_url

__all__ = ["postgres_schema_url", "postgres_url", "sqlite_url"]
