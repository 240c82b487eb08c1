"""The scheduler: what Scrapy's engine asks, in the reactor's thread."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

import urlserver
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.core.scheduler import Scheduler as LocalScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet import threads
from twisted.internet.defer import Deferred

from . import payload
from .connection import Connection
from .resolver import Resolver

logger = logging.getLogger(__name__)

HOSTS = 10_000  # whose addresses are kept
SEEN = 100_000  # requests that this process has put, and does not put again
ROOM = 1000  # requests of a process where CONCURRENT_REQUESTS is 0
MAX_CRAWL = 64  # bytes; it is the spiderid, too
PRINTABLE = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) != "%")
UNREADABLE = 60  # seconds until a request that this process cannot read is sent again

# The download slot of all requests from the daemon, which has kept the pause already.
SLOT = "urlserver"
# What a request's meta says while the request is in the downloader.
_OURS = {"download_slot": SLOT, "dont_obey_robotstxt": True, "autothrottle_dont_adjust_delay": True}
# In the meta of requests from the daemon, and of what is made of those: a retry, a redirect.
_SENT = "urlserver_sent"


@dataclass(eq=False)
class _Begun:
    """A request that the engine has begun."""

    job: urlserver.Job
    meta: dict[str, Any]  # what _OURS has replaced
    asked: bool = False  # the host was
    response: Response | None = None  # what it answered, before redirects and retries


class Scheduler(BaseScheduler):
    """Keeps requests in the URL server, for all processes of a crawl.

    The daemon sends each when its host may be asked, to any process, with the address to connect
    to. A request ends when its callback has, and when the pipelines have its items.

    Settings: URLSERVER, the daemon's address; URLSERVER_CRAWL, the name of the crawl (the
    spider's); URLSERVER_OPTIONS, further arguments of urlserver.Client, such as the token.
    CONCURRENT_REQUESTS bounds the requests that this process has.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Scheduler:
        return cls(crawler)

    def __init__(self, crawler: Crawler):
        self.crawler = crawler
        self._local = LocalScheduler.from_crawler(
            crawler
        )  # for what is no http or https, such as data:
        self._fingerprint: Callable[[Request], bytes] = crawler.request_fingerprinter.fingerprint
        self._begun: dict[Request, _Begun] = {}
        self._seen: LocalCache[bytes, None] = LocalCache(SEEN)
        self._starts: Counter[str] = Counter()  # start requests with dont_filter, by fingerprint
        self._news_due = False
        self._duplicate_logged = False

    def open(self, spider: Spider) -> Deferred[None] | None:
        if not is_reactor_installed():
            raise NotConfigured(
                "scrapy_urlserver.Scheduler needs Twisted's reactor: TWISTED_REACTOR_ENABLED"
            )
        from twisted.internet import reactor

        self.spider, self._reactor = spider, reactor
        self._resolver = Resolver.install(reactor, HOSTS)
        self._watch_engine()
        settings = self.crawler.settings
        self.crawl = self.crawl_name()
        room = settings.getint("CONCURRENT_REQUESTS") or ROOM
        options = settings.getdict("URLSERVER_OPTIONS")
        client = urlserver.Client(
            settings["URLSERVER"], spiderid=self.crawl, payload=True, **options
        )
        self._connection = Connection(client, self.crawl, room, self._on_news)
        self._connection.start()
        return self._local.open(spider)

    def close(self, reason: str) -> Deferred[None]:
        closed = threads.deferToThread(self._connection.close)
        closed.addCallback(lambda _: self._local.close(reason))
        return closed

    def crawl_name(self) -> str:
        """Returns the crawl, as it may stand in a line."""
        name = quote(
            self.crawler.settings.get("URLSERVER_CRAWL") or self.spider.name, safe=PRINTABLE
        )
        if not 0 < len(name) <= MAX_CRAWL:
            raise ValueError(
                f"crawl {name!r}: a name has 1 to {MAX_CRAWL} characters; set URLSERVER_CRAWL"
            )
        return name

    def has_pending_requests(self) -> bool:
        return self._connection.pending() or self._local.has_pending_requests()

    def __len__(self) -> int:
        """Returns how many requests the crawl has that this process has not begun.

        It asks the daemon, so it takes a moment.
        """
        counts = self._connection.count(timeout=5)
        there = counts.scheduled + counts.in_flight + counts.later - len(self._begun)
        return max(there, 0) + len(self._local)

    # Requests on their way to the daemon.

    def enqueue_request(self, request: Request) -> bool:
        if urlsplit(request.url).scheme not in ("http", "https"):
            return self._local.enqueue_request(request)
        fingerprint = self._fingerprint(request)
        if not request.dont_filter and fingerprint in self._seen:
            self._filtered(request)
            return False
        try:
            document = self._document(request, fingerprint)
        except ValueError as error:
            logger.error(
                "%s is dropped, for it cannot be sent to the URL server: %s", request, error
            )
            self._count("scheduler/unserializable")
            return False
        if not request.dont_filter:
            self._seen[fingerprint] = None
        self._connection.put(document, request)
        self._count("scheduler/enqueued", "scheduler/enqueued/urlserver")
        return True

    def _document(self, request: Request, fingerprint: bytes) -> dict[str, Any]:
        document = {
            "url": request.url,
            "crawl": self.crawl,
            "unique": self._unique(request, fingerprint.hex()),
            "metadata": {"spiderid": [self.crawl]},
            "payload": payload.dump(request, self.spider),
        }
        if request.priority:
            document["priority"] = request.priority
        slot = request.meta.get("download_slot")
        if slot and slot != SLOT:
            document["key"] = slot
        return document

    def _unique(self, request: Request, fingerprint: str) -> str:
        """Returns what the daemon knows the request by.

        All requests with dont_filter differ, but for the start requests: several processes put the
        same ones, and so does a process that was started again.
        """
        if not request.dont_filter:
            return fingerprint
        if not request.meta.get("is_start_request") or _SENT in request.meta:
            return f"{fingerprint}-{uuid4().hex}"
        self._starts[fingerprint] += 1
        return f"{fingerprint}-start-{self._starts[fingerprint]}"

    # Requests on their way from the daemon.

    def next_request(self) -> Request | None:
        request = self._local.next_request()
        while request is None and (job := self._connection.next()):
            request = self._begin(job)
        return request

    def _begin(self, job: urlserver.Job) -> Request | None:
        try:
            request = payload.load(job.payload, self.spider) if job.payload else Request(job.url)
        except ValueError as error:
            # another version of the spider may have put it: others may know what to do with it
            logger.error(
                "%s goes back for %d s, for its payload cannot be read: %s. Its crawl %s ends when "
                "a program that can read it has ended it, when the crawl's scope denies the URL, "
                "or when the crawl is stopped.",
                job.url,
                UNREADABLE,
                error,
                self.crawl,
            )
            self._connection.back(job, UNREADABLE)
            return None
        self._set_address(urlsplit(request.url).hostname or "", job.ip)
        request.meta[_SENT] = True
        self._begun[request] = _Begun(job, {name: request.meta.get(name) for name in _OURS})
        request.meta.update(_OURS)
        self._count("scheduler/dequeued", "scheduler/dequeued/urlserver")
        return request

    def _set_address(self, host: str, address: str) -> None:
        """Sends requests of the host to the address, over new connections where it has moved."""
        if not self._resolver.set(host, address):
            return
        handlers = self.crawler.engine.downloader.handlers
        for handler in {id(h): h for h in handlers._handlers.values()}.values():
            if pool := getattr(handler, "_pool", None):
                pool.closeCachedConnections()

    # What becomes of a request.

    def _watch_engine(self) -> None:
        engine = self.crawler.engine
        engine.downloader.per_slot_settings[SLOT] = {
            "delay": 0,
            "jitter": 0,
            "concurrency": ROOM * ROOM,
        }
        self._slot = engine._slot
        self._slot.inprogress = _InProgress(self._ended)
        for handler, signal in (
            (self._reached_downloader, signals.request_reached_downloader),
            (self._downloaded, signals.response_downloaded),
            (self._left_downloader, signals.request_left_downloader),
        ):
            self.crawler.signals.connect(handler, signal)

    def _reached_downloader(self, request: Request) -> None:
        if begun := self._begun.get(request):
            begun.asked = True

    def _downloaded(self, response: Response, request: Request) -> None:
        if begun := self._begun.get(request):
            begun.response = response
            address = str(response.ip_address or begun.job.ip)
            if address != begun.job.ip and "proxy" not in request.meta:
                logger.error(
                    "%s was fetched from %s instead of %s: a download handler that does not use "
                    "Twisted's resolver cannot be used with the URL server",
                    request,
                    address,
                    begun.job.ip,
                )

    def _left_downloader(self, request: Request) -> None:
        if begun := self._begun.get(request):
            for name, value in begun.meta.items():
                request.meta.pop(name, None)
                if value is not None:
                    request.meta[name] = value

    def _ended(self, request: Request) -> None:
        """The request's callback has ended, and the pipelines with its items."""
        begun = self._begun.pop(request, None)
        if begun is None:
            return  # no request of the daemon
        if begun.response is not None:
            self._connection.done(
                begun.job,
                status=begun.response.status,
                retry_after=_text(begun.response.headers.get("Retry-After")),
                bytes=len(begun.response.body),
            )
        elif begun.asked:
            self._connection.done(begun.job, status=0)
        else:  # a middleware has answered it or refused it
            self._connection.done(begun.job)

    # News from the connection.

    def _on_news(self) -> None:
        """Called by the connection's thread."""
        if not self._news_due:
            self._news_due = True
            self._reactor.callFromThread(self._take_news)

    def _take_news(self) -> None:
        self._news_due = False
        while self._connection.dropped:
            self._dropped(*self._connection.dropped.popleft())
        self._slot.nextcall.schedule()

    def _dropped(self, request: Request, answer: str) -> None:
        if answer == "known":
            self._filtered(request)
        elif answer == "out_of_scope":
            logger.debug("%s is out of the crawl's scope", request)
            self._count("scheduler/out_of_scope")
        else:
            logger.error("%s is dropped, for the URL server does not take it", request)
            self._count("scheduler/invalid")
        self.crawler.signals.send_catch_log(
            signals.request_dropped, request=request, spider=self.spider
        )

    def _filtered(self, request: Request) -> None:
        self._count("dupefilter/filtered")
        if self.crawler.settings.getbool("DUPEFILTER_DEBUG"):
            logger.debug("Filtered duplicate request: %s", request)
        elif not self._duplicate_logged:
            self._duplicate_logged = True
            logger.debug(
                "Filtered duplicate request: %s - DUPEFILTER_DEBUG shows all of them", request
            )

    def _count(self, *names: str) -> None:
        for name in names:
            self.crawler.stats.inc_value(name)


class _InProgress(set[Request]):
    """The requests that the engine has in progress. Tells which one has ended."""

    def __init__(self, ended: Callable[[Request], None]):
        super().__init__()
        self._ended = ended

    def remove(self, request: Request) -> None:
        super().remove(request)
        self._ended(request)


def _text(header: bytes | None) -> str | None:
    return header.decode("latin-1") if header is not None else None
