"""A broad crawl.

broad.py PORT HOSTS SETTING=VALUE… fetches all pages of web.py's hosts, and prints how many
this process fetched, in which time."""

from __future__ import annotations

import json
import os
import sys
import time

import scrapy
from scrapy.crawler import CrawlerProcess
from web import host


class Broad(scrapy.Spider):
    name = "broad"
    first = last = 0.0
    pages = 0

    async def start(self):
        for number in range(self.hosts):
            yield scrapy.Request(f"http://{host(number)}:{self.port}/0")

    def parse(self, response):
        self.first, self.last = self.first or time.monotonic(), time.monotonic()
        self.pages += 1
        print(response.url, file=self.record, flush=True)
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


def main() -> None:
    port, hosts, *settings = sys.argv[1:]
    values = {"LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False, "CONCURRENT_REQUESTS": 100}
    values.update(setting.split("=", 1) for setting in settings)
    process = CrawlerProcess(values)
    crawler = process.create_crawler(Broad)
    with open(values.get("RECORD", os.devnull), "a") as record:
        process.crawl(crawler, port=int(port), hosts=int(hosts), record=record)
        process.start()
    spider, cpu = crawler.spider, time.process_time()
    print(
        json.dumps({"pages": spider.pages, "first": spider.first, "last": spider.last, "cpu": cpu})
    )


if __name__ == "__main__":
    main()
