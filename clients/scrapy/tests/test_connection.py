"""The connection to the daemon, without Scrapy."""

from __future__ import annotations

import time

import urlserver
from harness import Daemon

from scrapy_urlserver.connection import Connection

PATIENCE = 60.0


def test_put_before_the_thread_runs():
    """A document that is put before the thread has entered its client is not lost."""
    daemon = Daemon()
    connection = Connection(
        urlserver.Client(daemon.address, spiderid="c", payload=True), "c", 1, lambda: None
    )
    connection.put({"url": "http://127.1.0.1/", "crawl": "c"}, None)
    connection.start()
    try:
        deadline = time.monotonic() + PATIENCE
        while connection._answered == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        counts = connection.count(PATIENCE)
        assert counts.scheduled + counts.in_flight + counts.later == 1
    finally:
        connection.close()
        daemon.close()
