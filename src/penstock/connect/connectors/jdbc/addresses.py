"""Addresses of databases as JDBC writes them, and which library speaks to each."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import parse_qsl, unquote

from penstock.errors import ConfigError


class Product(StrEnum):
    """A database that can be spoken to."""

    POSTGRESQL = "postgresql"
    MYSQL = "mysql"
    SQLITE = "sqlite"


_SUBPROTOCOLS = {
    "postgresql": Product.POSTGRESQL,
    "mysql": Product.MYSQL,
    "mariadb": Product.MYSQL,
    "sqlite": Product.SQLITE,
}
_PORTS = {Product.POSTGRESQL: 5432, Product.MYSQL: 3306}
_SERVER = re.compile(
    r"//(?P<host>\[[^\]]+\]|[^:/?]*)(?::(?P<port>\d+))?(?:/(?P<name>[^?]*))?(?:\?(?P<more>.*))?"
)
_LIBRARIES = {Product.POSTGRESQL: "psycopg", Product.MYSQL: "pymysql"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseAddress:
    """Where a database is."""

    product: Product
    host: str = ""
    port: int = 0
    name: str  # Of the database; SQLite: the file.
    options: Mapping[str, str] = field(default_factory=dict)  # Behind the question mark.

    @classmethod
    def of(cls, url: str) -> "DatabaseAddress":
        """ConfigError for an address that nobody here can speak to."""
        scheme, _, rest = url.partition(":")
        subprotocol, _, place = rest.partition(":")
        product = _SUBPROTOCOLS.get(subprotocol)
        if scheme != "jdbc" or product is None:
            known = ", ".join(f"jdbc:{one}:" for one in _SUBPROTOCOLS)
            raise ConfigError(f"{url} begins with none of {known}")
        if product is Product.SQLITE:
            if not place:
                raise ConfigError(f"{url} names no file")
            return cls(product=product, name=place.partition("?")[0])
        found = _SERVER.fullmatch(place)
        if found is None or not found["name"]:
            raise ConfigError(f"{url} is not like jdbc:{subprotocol}://host:port/database")
        return cls(
            product=product,
            host=(found["host"] or "localhost").strip("[]"),
            port=int(found["port"] or _PORTS[product]),
            name=unquote(found["name"]),
            options=dict(parse_qsl(found["more"] or "")),
        )

    @property
    def library(self) -> str | None:
        """The library that speaks to it; None: Python itself."""
        return _LIBRARIES.get(self.product)
