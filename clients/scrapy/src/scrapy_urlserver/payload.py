"""Requests as bytes: what is put with a URL, and comes back with it to any process of the crawl.

The form is JSON of what Request.to_dict returns, with callbacks by name. An object with the one
member "$bytes", "$tuple", … stands for a value that JSON does not have. It is not pickle: whoever
may put URLs into the daemon could otherwise run code in the spiders.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from itemadapter import ItemAdapter, is_item
from scrapy import Request, Spider
from scrapy.utils.misc import load_object
from scrapy.utils.request import request_from_dict

MAX = 8192  # bytes of a payload that the daemon takes
MAX_TEXT = 1 << 20  # bytes of a compressed payload's text

# What a request has where nothing else was said, and is left out.
_DEFAULTS: dict[str, Any] = Request("data:,").to_dict()


def dump(request: Request, spider: Spider) -> bytes:
    """Returns the request as a payload of at most MAX bytes.

    Raises ValueError if it cannot: a callback is no method of the spider, meta or cb_kwargs have a
    value of another type than those below, or the request is too long.
    """
    text = json.dumps(_fields(request, spider), ensure_ascii=False, separators=(",", ":")).encode()
    if len(text) > MAX:
        compressed = zlib.compress(text)
        if len(compressed) > MAX or len(text) > MAX_TEXT:
            raise ValueError(
                f"it has {len(text)} bytes, {len(compressed)} compressed; {MAX} are taken"
            )
        return compressed
    return text


def load(payload: bytes, spider: Spider) -> Request:
    """Returns the request of a payload. Raises ValueError if it is none of dump."""
    try:
        if not payload.startswith(b"{"):
            payload = zlib.decompressobj().decompress(payload, MAX_TEXT)
        return _request(json.loads(payload), spider)
    except Exception as error:  # a class of the payload may raise anything
        raise ValueError(f"not a request: {error!r}") from error


def _fields(request: Request, spider: Spider) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in request.attributes:
        value = getattr(request, name)
        if name in ("callback", "errback"):
            value = _method_name(value, spider)
        elif name == "headers":
            value = {
                k.decode("latin-1"): [v.decode("latin-1") for v in vs] for k, vs in value.items()
            }
        if name not in _DEFAULTS or value != _DEFAULTS[name]:
            fields[name] = _plain(value, spider)
    if type(request) is not Request:
        fields["_class"] = f"{type(request).__module__}.{type(request).__name__}"
    return fields


def _request(fields: dict[str, Any], spider: Spider) -> Request:
    fields = {name: _value(value, spider) for name, value in fields.items()}
    if "headers" in fields:
        fields["headers"] = {
            k.encode("latin-1"): [v.encode("latin-1") for v in vs]
            for k, vs in fields["headers"].items()
        }
    if "_class" in fields and not _is_class(fields["_class"], Request):
        raise ValueError(f"{fields['_class']} is no class of requests")
    return request_from_dict(fields, spider=spider)


def _method_name(method: Any, spider: Spider) -> str | None:
    if method is None:
        return None
    name = getattr(method, "__name__", "")
    if getattr(method, "__self__", None) is spider and getattr(spider, name, None) == method:
        return name
    return Request("data:,", callback=method).to_dict(spider=spider)[
        "callback"
    ]  # looks at all methods


def _is_class(path: str, base: type) -> bool:
    found = load_object(path)
    return isinstance(found, type) and issubclass(found, base)


def _plain(value: Any, spider: Spider) -> Any:
    """Returns value with nothing in it but what JSON has."""
    kind = type(value)
    if value is None or kind in (str, int, float, bool):
        return value
    if kind is list:
        return [_plain(v, spider) for v in value]
    if kind is dict:
        if all(type(k) is str and not k.startswith("$") for k in value):
            return {k: _plain(v, spider) for k, v in value.items()}
        return {"$dict": [[_plain(k, spider), _plain(v, spider)] for k, v in value.items()]}
    if kind is bytes:
        return {"$bytes": value.decode("latin-1")}
    if kind in (tuple, set, frozenset):
        return {f"${kind.__name__}": [_plain(v, spider) for v in value]}
    if isinstance(value, Request):
        return {"$request": _fields(value, spider)}
    if isinstance(value, str):  # such as Parsel's text
        return str(value)
    if is_item(value):
        fields = {k: _plain(v, spider) for k, v in ItemAdapter(value).items()}
        return {"$item": [f"{kind.__module__}.{kind.__qualname__}", fields]}
    raise ValueError(f"{value!r} of type {kind.__name__} cannot be written as JSON")


def _value(plain: Any, spider: Spider) -> Any:
    """The opposite of _plain."""
    if isinstance(plain, list):
        return [_value(v, spider) for v in plain]
    if not isinstance(plain, dict):
        return plain
    tag = next(iter(plain), "")
    if not tag.startswith("$"):
        return {k: _value(v, spider) for k, v in plain.items()}
    content = plain[tag]
    if tag == "$dict":
        return {_value(k, spider): _value(v, spider) for k, v in content}
    if tag == "$bytes":
        return content.encode("latin-1")
    if tag == "$request":
        return _request(content, spider)
    if tag == "$item":
        return _item(content[0], _value(content[1], spider))
    kinds = {"$tuple": tuple, "$set": set, "$frozenset": frozenset}
    if tag not in kinds:
        raise ValueError(f"{tag} is no type of value")
    return kinds[tag](_value(v, spider) for v in content)


def _item(path: str, fields: dict[str, Any]) -> Any:
    kind = load_object(path)
    if not (isinstance(kind, type) and ItemAdapter.is_item_class(kind)):
        raise ValueError(f"{path} is no class of items")
    return kind(**fields)
