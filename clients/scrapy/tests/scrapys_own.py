"""A pytest plugin that runs tests of Scrapy's source package with the URL server's scheduler.

pytest -p scrapys_own tests/test_engine.py: a daemon runs beside.
"""

from __future__ import annotations

import hashlib
import time
from uuid import uuid4

import pytest
import scrapy.core.scheduler
from harness import Daemon
from scrapy.settings import default_settings
from scrapy.utils.request import RequestFingerprinter

from scrapy_urlserver import Scheduler

# Tests that are left out, by the reason.
LEFT_OUT = {
    "is about Scrapy's own queues": [
        "test_scheduler.py::TestMigration::test_migration",
        "test_scheduler.py::TestIncompatibility::test_incompatibility",
        "test_scheduler.py::test_scheduler_without_crawler",
        "test_engine_close_spider.py::test_exception_scheduler",
    ],
    "expects turns of one host's download slots; the daemon has hosts take turns": [
        "test_scheduler.py::TestSchedulerWithDownloaderAwareInMemory::test_logic",
        "test_scheduler.py::TestSchedulerWithDownloaderAwareOnDisk::test_logic",
    ],
    "expects the order of Scrapy's queues; the daemon sends in the order of the puts": [
        "test_engine_loop.py::TestRequestSendOrder::test_default",
        "test_engine_loop.py::TestRequestSendOrder::test_lifo_start",
        "test_engine_loop.py::TestRequestSendOrder::test_shared_queues",
        "test_engine_loop.py::TestRequestSendOrder::test_lazy",
    ],
    "expects DOWNLOAD_DELAY; the daemon keeps the pace": [
        "test_crawl.py::TestCrawl::test_fixed_delay",
        "test_crawl.py::TestCrawl::test_randomized_delay",
    ],
    "expects a failed look-up; the daemon looks names up, and ends what has no address": [
        "test_crawl.py::TestCrawl::test_retry_dns_error",
    ],
}


class OwnCrawl(Scheduler):
    """Gives each crawler a crawl of its own, for all have the same few spiders.

    One with a JOBDIR goes on with the crawl of the one before it.
    """

    def crawl_name(self):
        job = self.crawler.settings.get("JOBDIR") or uuid4().hex
        return hashlib.sha1(job.encode()).hexdigest()


class Waiting(OwnCrawl):
    """Waits for the daemon where Scrapy's tests call a scheduler without an engine."""

    @classmethod
    def from_crawler(cls, crawler):
        crawler.request_fingerprinter = RequestFingerprinter(crawler)
        crawler.engine.downloader.per_slot_settings = {}
        return super().from_crawler(crawler)

    def has_pending_requests(self):
        return len(self) > 0

    def next_request(self):
        while (request := super().next_request()) is None and self.has_pending_requests():
            time.sleep(0.001)
        return request


def pytest_configure(config):
    config.daemon = Daemon()
    default_settings.SCHEDULER = OwnCrawl
    default_settings.URLSERVER = config.daemon.address
    scrapy.core.scheduler.Scheduler = Waiting


def pytest_unconfigure(config):
    config.daemon.close()


def pytest_collection_modifyitems(items):
    names = {item.nodeid.removeprefix("tests/"): item for item in items}
    files = {name.split("::")[0] for name in names}
    for reason, left_out in LEFT_OUT.items():
        for name in left_out:
            if name in names:
                names[name].add_marker(pytest.mark.skip(reason=reason))
            elif name.split("::")[0] in files:
                raise pytest.UsageError(f"{name} is left out, and not there")
