"""A crawl of one site with requests of many kinds.

shop.py PORT URLSERVER crawls a site of web.py, and prints what it saw.
"""

from __future__ import annotations

import json
import sys

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import FormRequest, JsonRequest

SETTINGS = {
    "SCHEDULER": "scrapy_urlserver.Scheduler",
    "LOG_LEVEL": "CRITICAL",
    "TELNETCONSOLE_ENABLED": False,
    "ROBOTSTXT_OBEY": True,
    "DOWNLOAD_DELAY": 60,
    "AUTOTHROTTLE_ENABLED": True,
}


class Shop(scrapy.Spider):
    name = "the shop"

    async def start(self):
        self.seen = []
        for _ in range(2):
            yield scrapy.Request(self.url("start"), dont_filter=True)
        yield scrapy.Request("data:,local", self.seen_by_errback, errback=self.seen_by_errback)

    def url(self, path):
        return f"http://shop.example:{self.port}/{path}"

    def parse(self, response):
        self.note(response)
        for value in "aab":
            yield FormRequest(
                self.url("post"), self.product, formdata={"v": value}, cb_kwargs={"value": (value,)}
            )
        yield JsonRequest(
            self.url("post"), self.product, data={"v": 1}, cb_kwargs={"value": b"\xff"}
        )
        yield scrapy.Request(
            self.url("slot"), self.product, meta={"download_slot": "mine"}, cb_kwargs={"value": 1}
        )
        yield scrapy.Request(self.url("lambda"), lambda response: None)
        yield scrapy.Request(f"http://nobody.invalid:{self.port}/")

    def product(self, response, value):
        self.note(response, value=repr(value))

    def seen_by_errback(self, response):
        self.note(response)

    def note(self, response, **more):
        slots = self.crawler.engine.downloader.slots
        self.seen.append(
            {
                "url": response.url.split("/", 3)[-1],
                "method": response.request.method,
                "address": str(response.ip_address),
                "slot": response.meta.get("download_slot"),
                "meta": sorted(response.meta),
                "delay": slots["urlserver"].delay if "urlserver" in slots else None,
                **more,
            }
        )


def main() -> None:
    process = CrawlerProcess(SETTINGS | {"URLSERVER": sys.argv[2]})
    crawler = process.create_crawler(Shop)
    process.crawl(crawler, port=sys.argv[1])
    process.start()
    stats = {k: v for k, v in crawler.stats.get_stats().items() if isinstance(v, int | str)}
    print(json.dumps({"seen": crawler.spider.seen, "stats": stats}))


if __name__ == "__main__":
    main()
