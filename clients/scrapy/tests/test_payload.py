"""Requests survive the way through a payload."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
import scrapy
from scrapy.http import FormRequest, JsonRequest

from scrapy_urlserver import payload


@dataclass
class Page:
    title: str
    numbers: list[int]


class Product(scrapy.Item):
    name = scrapy.Field()


class Shop(scrapy.Spider):
    name = "shop"

    def __init__(self):
        super().__init__()
        self.found = self.parse_product

    def parse_product(self, response): ...

    def failed(self, failure): ...


META = {
    "plain": [None, True, 1, 1.5, "ä", {"a": {"b": []}}],
    "bytes": bytes(range(256)),
    "tuple": (1, ("a",), {2, 3}, frozenset({4})),
    "keys": {1: "a", (2, 3): "b", "$tuple": "c"},
    "items": [Page("t", [1]), Product(name="x")],
}


@pytest.mark.parametrize(
    "request_",
    [
        scrapy.Request("http://a.example/?q=%C3%A4#part"),
        scrapy.Request(
            "http://a.example/",
            method="PUT",
            body=b"\xff\0",
            headers={"X": ["1", b"\xe4"]},
            priority=-3,
        ),
        scrapy.Request(
            "http://a.example/", cookies={"a": "b"}, meta=META, cb_kwargs=META, flags=["f"]
        ),
        scrapy.Request("http://a.example/", dont_filter=True, encoding="latin-1"),
        FormRequest("http://a.example/", formdata={"a": "b"}),
        JsonRequest("http://a.example/", data={"a": [1]}),
    ],
)
def test_round_trip(request_):
    spider = Shop()
    request_.callback, request_.errback = spider.parse_product, spider.failed
    back = payload.load(payload.dump(request_, spider), spider)
    assert type(back) is type(request_)
    assert back.to_dict(spider=spider) == request_.to_dict(spider=spider)
    assert back.callback == spider.parse_product


def test_request_in_meta():
    spider = Shop()
    request = scrapy.Request(
        "http://a.example/", meta={"next": scrapy.Request("http://b.example/", priority=2)}
    )
    back = payload.load(payload.dump(request, spider), spider)
    assert back.meta["next"].to_dict() == request.meta["next"].to_dict()


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"callback": lambda response: None}, "not an instance method"),
        ({"meta": {"x": object()}}, "type object"),
        ({"body": random.Random(1).randbytes(10000)}, "are taken"),
    ],
)
def test_refused(members, says):
    with pytest.raises(ValueError, match=says):
        payload.dump(scrapy.Request("http://a.example/", **members), Shop())


def test_long():
    request = scrapy.Request("http://a.example/", meta={"text": "word " * 20000})
    packed = payload.dump(request, Shop())
    assert len(packed) <= payload.MAX
    assert payload.load(packed, Shop()).meta == request.meta


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        b"\x80\x04.",
        b'{"url":"http://a.example/","_class":"os.system"}',
        b'{"url":"http://a.example/","meta":{"x":{"$item":["subprocess.Popen",{"args":"true"}]}}}',
        b'{"url":"http://a.example/","meta":{"x":{"$eval":[]}}}',
        b'{"url":"http://a.example/","callback":"none"}',
        b'{"url":"http://a.example/","meta":' + b'{"a":' * 1300 + b"1" + b"}" * 1301,
        b'{"url":"http://a.example/","meta":{"x":{"$item":[]}}}',
        b'{"url":"http://a.example/","headers":{"X":null}}',
    ],
)
def test_foreign(text):
    """What somebody else has put is refused, and runs nothing."""
    with pytest.raises(ValueError):
        payload.load(text, Shop())
