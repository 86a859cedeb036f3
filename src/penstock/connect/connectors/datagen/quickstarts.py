"""Schemas that are ready: what `quickstart` names, each with the field that is its key."""

from typing import Any

Avro = dict[str, Any]


def _field(name: str, kind: str, **properties: Any) -> Avro:
    return {"name": name, "type": {"type": kind, "arg.properties": properties}}


def _iterated(name: str, start: int = 1, step: int = 1, kind: str = "int") -> Avro:
    return _field(name, kind, iteration={"start": start, "step": step})


def _ranged(name: str, low: float, high: float, kind: str = "int") -> Avro:
    return _field(name, kind, range={"min": low, "max": high})


def _one_of(name: str, *options: str) -> Avro:
    return _field(name, "string", options=list(options))


def _matching(name: str, pattern: str) -> Avro:
    return _field(name, "string", regex=pattern)


def _record(name: str, *fields: Avro) -> Avro:
    return {"type": "record", "namespace": "ksql", "name": name, "fields": list(fields)}


_ADDRESS = _record(
    "address",
    _matching("city", "City_[1-9][0-9]?"),
    _matching("state", "State_[1-9][0-9]?"),
    _ranged("zipcode", 10_000, 100_000, "long"),
)
_USER = (
    _ranged("registertime", 1_487_715_775_521, 1_519_273_364_600, "long"),
    _matching("userid", "User_[1-9]"),
    _matching("regionid", "Region_[1-9]"),
    _one_of("gender", "MALE", "FEMALE", "OTHER"),
)
_IP = "1(11|22)\\.\\d{2,3}\\.\\d{1,2}\\.\\d{2,3}"
_AGENTS = ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (Macintosh)", "curl/8.5.0")
_MEANINGS = ("Continue", "Successful", "Redirect", "Page not found", "Internal server error")
_MESSAGES = (
    "(expletive deleted)",
    "airport refurb looks great, will fly outta here more!",
    "more peanuts please",
    "Surprisingly good, maybe you are getting your mojo back at long last!",
    "is this as good as it gets? really ?",
    "worst. flight. ever. #neveragain",
)

# By the name in lower case: the schema and its key.
QUICKSTARTS: dict[str, tuple[Avro, str]] = {
    "clickstream": (
        _record(
            "clickstream",
            _matching("ip", _IP),
            _ranged("userid", 1, 40),
            _one_of("remote_user", "-"),
            _field("time", "string", regex="[1-9]\\d{4}"),
            _iterated("_time", 1, 10, "long"),
            _one_of("request", "GET /index.html HTTP/1.1", "GET /site/login.html HTTP/1.1"),
            _one_of("status", "200", "302", "404", "405", "406", "407"),
            _one_of("bytes", "278", "1289", "2048", "4096", "4006", "4196", "14096"),
            _one_of("referrer", "-"),
            _one_of("agent", *_AGENTS),
        ),
        "ip",
    ),
    "clickstream_codes": (
        _record(
            "clickstream_codes",
            _field("code", "int", options=[100, 200, 302, 404, 500]),
            _one_of("definition", *_MEANINGS),
        ),
        "code",
    ),
    "clickstream_users": (
        _record(
            "clickstream_users",
            _iterated("user_id", 1, 1),
            _matching("username", "[a-z]{3,8}_\\d{2}"),
            _ranged("registered_at", 1_407_645_330_000, 1_502_339_792_000, "long"),
            _one_of("first_name", "Elwyn", "Curran", "Hanson", "Woodrow", "Ferd", "Reeva"),
            _one_of("last_name", "Vanyard", "Lalonde", "Trice", "Barnhill", "Pask"),
            _one_of("city", "Palo Alto", "San Francisco", "Raleigh", "London", "Frankfurt"),
            _one_of("level", "Gold", "Silver", "Platinum"),
        ),
        "user_id",
    ),
    "inventory": (
        _record(
            "inventory",
            _iterated("id", 0, 1, "long"),
            _ranged("quantity", 1, 100, "long"),
            _ranged("productid", 1, 100, "long"),
        ),
        "id",
    ),
    "orders": (
        _record(
            "orders",
            _iterated("ordertime", 1_487_715_775_521, 60_000, "long"),
            _iterated("orderid", 0),
            _matching("itemid", "Item_[1-9][0-9]{0,2}"),
            _ranged("orderunits", 0.1, 10.0, "double"),
            {"name": "address", "type": _ADDRESS},
        ),
        "orderid",
    ),
    "pageviews": (
        _record(
            "pageviews",
            _iterated("viewtime", 1, 10, "long"),
            _matching("userid", "User_[1-9]"),
            _matching("pageid", "Page_[1-9][0-9]"),
        ),
        "viewtime",
    ),
    "product": (
        _record(
            "product",
            _iterated("id", 0, 1, "long"),
            _matching("name", "Product_[1-9][0-9]"),
            _ranged("price", 1.0, 1000.0, "double"),
        ),
        "id",
    ),
    "purchases": (
        _record(
            "purchases",
            _iterated("id", 0, 1, "long"),
            _one_of("item_type", "stickers", "cups", "pens", "shirts"),
            _ranged("quantity", 1, 10),
        ),
        "id",
    ),
    "ratings": (
        _record(
            "ratings",
            _iterated("rating_id", 1, 1, "long"),
            _ranged("user_id", 1, 20),
            _ranged("stars", 1, 5),
            _ranged("route_id", 1, 10_000),
            _iterated("rating_time", 1, 12, "long"),
            _one_of("channel", "web", "ios", "ios-test", "android", "iOS-test"),
            _one_of("message", *_MESSAGES),
        ),
        "rating_id",
    ),
    "stock_trades": (
        _record(
            "StockTrade",
            _one_of("side", "BUY", "SELL"),
            _ranged("quantity", 1, 5000),
            _one_of("symbol", "ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT"),
            _ranged("price", 5, 1000),
            _matching("account", "(ABC123|LMN456|XYZ789)"),
            _matching("userid", "User_[1-9]"),
        ),
        "symbol",
    ),
    "stores": (
        _record(
            "stores",
            _iterated("store_id", 1, 1),
            _one_of("city", "Raleigh", "Chicago"),
            _one_of("state", "NC", "IL"),
        ),
        "store_id",
    ),
    "transactions": (
        _record(
            "transactions",
            _iterated("transaction_id", 1, 1, "long"),
            _ranged("card_id", 1, 25, "long"),
            _matching("user_id", "User_[1-9]"),
            _ranged("purchase_id", 0, 1000, "long"),
            _ranged("store_id", 1, 8),
        ),
        "transaction_id",
    ),
    "users": (_record("users", *_USER), "userid"),
    "users_": (
        _record(
            "users",
            *_USER,
            {
                "name": "interests",
                "type": {
                    "type": "array",
                    "items": {"type": "string", "arg.properties": {"options": ["Game", "Sport"]}},
                    "arg.properties": {"length": {"min": 1, "max": 3}},
                },
            },
            {
                "name": "contactinfo",
                "type": {
                    "type": "map",
                    "values": {"type": "string", "arg.properties": {"regex": "[a-z]{6}"}},
                    "arg.properties": {"length": 2},
                },
            },
        ),
        "userid",
    ),
}
