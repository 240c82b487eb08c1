"""A crawl with Crawlee, for test_killed.

crawl.py SPIDERS HTTP NAME URL... crawls what it finds from the URLs, as one of several processes at
one queue. It sends NAME as User-Agent, and prints the URL of each page.
"""

from __future__ import annotations

import asyncio
import sys

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storages import RequestQueue

from urlserver.crawlee import UrlServerStorageClient


async def main(spiders: str, http: str, name: str, *urls: str) -> None:
    storage = UrlServerStorageClient(spiders, http_at=http)
    queue = await RequestQueue.open(name="killed", storage_client=storage)
    crawler = ParselCrawler(
        request_manager=queue,
        storage_client=storage,
        http_client=storage.http_client(name),
        concurrency_settings=ConcurrencySettings(desired_concurrency=8, max_concurrency=8),
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def visit(context: ParselCrawlingContext) -> None:
        sys.stdout.write(context.request.url + "\n")  # one write, as others write to the same file
        sys.stdout.flush()
        await context.enqueue_links(strategy="all")

    await crawler.run(list(urls), purge_request_queue=False)
    await storage.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
