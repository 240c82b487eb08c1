"""What Crawlee's queue does with jobs that are not its own, and what its HTTP client asks for."""

from __future__ import annotations

import http.server
import importlib.util
import threading
import unittest
import zlib
from unittest import mock

import urlserver
from urlserver.wire import Counts

from .daemon import Daemon

FOREIGN = [b"no zlib", zlib.compress(b"[]"), zlib.compress(b'{"request": {}, "again": 0}')]


@unittest.skipIf(importlib.util.find_spec("crawlee") is None, "crawlee is not installed")
class CrawleeTest(unittest.IsolatedAsyncioTestCase):
    """A queue at a daemon."""

    async def test_foreign_payloads(self) -> None:
        """What others have put with payloads of their own goes back, and holds nothing up."""
        from crawlee import Request
        from crawlee.storage_clients import MemoryStorageClient

        from urlserver.crawlee import UrlServerRequestQueueClient, UrlServerStorageClient

        daemon = Daemon("Req_Host_Per_Sec = 1000\nrobots.enabled = false")
        self.addCleanup(daemon.close)
        daemon.start()
        storage = UrlServerStorageClient(
            daemon.spiders, http_at=daemon.http, base=MemoryStorageClient()
        )
        self.addAsyncCleanup(storage.close)
        queue = await storage.create_rq_client(alias="foreign")
        assert isinstance(queue, UrlServerRequestQueueClient)
        crawl = queue._entry.crawl
        async with urlserver.Client(daemon.spiders) as other:
            for n, payload in enumerate(FOREIGN):
                url, metadata = f"http://127.0.0.1/{n}", {"spiderid": crawl}
                said = await other.put(url, crawl=crawl, metadata=metadata, payload=payload)
                self.assertEqual(said, "new")
        await queue.add_batch_of_requests([Request.from_url("http://127.0.0.1/own")])
        request = None
        while request is None and not await queue.is_finished():
            request = await queue.fetch_next_request()
        assert request is not None
        self.assertEqual(request.url, "http://127.0.0.1/own")
        self.assertIsNotNone(await queue.mark_request_as_handled(request))

    def test_target(self) -> None:
        """The request is for all of the URL behind its host."""
        from crawlee import Request

        from urlserver.crawlee import _send

        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.requestline.split()[1])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        targets = ["/", "/?", "//b/c?", "/%2f?d=//e?", "/;f=1"]
        for target in targets:
            url = f"http://a.example:{server.server_port}{target}"
            job = mock.Mock(url=url, ip="127.0.0.1")
            _send(Request.from_url(url), job, "agent", 10)
        self.assertEqual(asked, targets)

    async def test_foreign_payloads_only(self) -> None:
        """A fetch ends in time where one payload after the other cannot be read."""
        from urlserver import crawlee

        now = 0.0

        def take() -> urlserver.Job | None:
            nonlocal now
            now += 1
            return mock.Mock(payload=b"no zlib") if now < 60 else None

        queue = crawlee.UrlServerRequestQueueClient(mock.Mock(), mock.Mock())
        queue._client = mock.Mock(take=take, open_jobs=0)
        queue._client.count = mock.AsyncMock(return_value=Counts(0, 0, 0, 0))
        with (
            mock.patch.object(crawlee, "time", mock.Mock(monotonic=lambda: now)),
            self.assertLogs("urlserver", "ERROR"),
        ):
            self.assertIsNone(await queue.fetch_next_request())
        self.assertLessEqual(now, crawlee.FETCH_WAIT)
