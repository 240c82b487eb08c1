"""A storage client of Crawlee for Python whose request queues are crawls of the URL server.

Datasets and key-value stores stay with another storage client. The module wants Crawlee:
``pip install urlserver[crawlee]``.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import http.client
import json
import logging
import secrets
import ssl
import time
import urllib.request
import zlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from crawlee import HttpHeaders, Request
from crawlee.configuration import Configuration
from crawlee.errors import ContextPipelineInterruptedError
from crawlee.http_clients import HttpClient, HttpCrawlingResult, HttpResponse
from crawlee.proxy_configuration import ProxyInfo
from crawlee.sessions import Session
from crawlee.statistics import Statistics
from crawlee.storage_clients import FileSystemStorageClient, StorageClient
from crawlee.storage_clients._base import (
    DatasetClient,
    KeyValueStoreClient,
    RequestQueueClient,
)
from crawlee.storage_clients.models import (
    AddRequestsResponse,
    ProcessedRequest,
    RequestQueueMetadata,
    UnprocessedRequest,
)

from .client import Client, Failed
from .job import Job
from .wire import Counts, absolute

log = logging.getLogger("urlserver")

APPID = "crawlee"
"""The appid of all documents that come from here."""

REGISTRY = "urlserver-queues"
"""The key-value store that knows the queues; one that was purged or dropped has another crawl."""

REMEMBERED = 10_000
"""Requests and handled keys that a queue remembers."""

FETCH_WAIT = 5.0
"""Seconds that fetch_next_request waits for a request that is pending."""

UNREADABLE = 60
"""Seconds until a request that this process cannot read is sent again."""

SETTLE_WAIT = 2.0
"""Seconds in which what this process has ended has to be counted."""

EPOCH = 1_577_836_800
"""The first second of 2020: priorities of the forefront count from there."""


class _Taken(NamedTuple):
    """A request that is being handled here."""

    job: Job
    again: int  # how often it was reclaimed


class _Registered(NamedTuple):
    """What the registry knows of a queue."""

    id: str
    name: str | None
    crawl: str
    created_at: str


class UrlServerStorageClient(StorageClient):
    """Request queues at a URL server, and all else with another storage client.

    A queue is a crawl with a spiderid of its own. It connects to the daemon in the event loop that
    opens it.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str = "",
        tls: ssl.SSLContext | bool = False,
        status_timeout: float = 120.0,
        http_at: str = "http://127.0.0.1:8080",
        http_token: str = "",
        base: StorageClient | None = None,
    ) -> None:
        """Make a storage client of the daemon at address, its spider.listen.

        token, tls and status_timeout are those of Client. http_at and http_token are the daemon's
        http.listen and its token: purge and drop stop the crawl there. base has the datasets and
        key-value stores; without it, they are in the file system.
        """
        self._address, self._token, self._tls = address, token, tls
        self._status_timeout = status_timeout
        self._http, self._http_token = http_at.rstrip("/"), http_token
        self._base = base or FileSystemStorageClient()
        self._registry: KeyValueStoreClient | None = None
        self._queues: dict[str, UrlServerRequestQueueClient] = {}

    async def create_dataset_client(self, **kwargs: Any) -> DatasetClient:
        """Create a dataset client of the other storage client."""
        return await self._base.create_dataset_client(**kwargs)

    async def create_kvs_client(self, **kwargs: Any) -> KeyValueStoreClient:
        """Create a key-value store client of the other storage client."""
        return await self._base.create_kvs_client(**kwargs)

    async def create_rq_client(
        self,
        *,
        id: str | None = None,
        name: str | None = None,
        alias: str | None = None,
        configuration: Configuration | None = None,
    ) -> RequestQueueClient:
        """Create a request queue client."""
        if sum(key is not None for key in (id, name, alias)) > 1:
            raise ValueError("only one of id, name and alias may be given")
        key = id or _queue_id(name, alias or "default")
        queue = self._queues.pop(key, None)
        if queue is not None:
            await queue.close()
        old = await self.registered(key)
        # All that open a queue by its name work at one crawl, whatever they know of each other.
        entry = old or await self.register(key, name, _new_crawl(key) if name is None else key)
        queue = UrlServerRequestQueueClient(self, entry)
        await queue.open(self.client(entry.crawl))
        self._queues[key] = queue
        await self._purge_if_needed(
            queue, configuration or Configuration.get_global_configuration()
        )
        return queue

    async def close(self) -> None:
        """Close all queues, and give back what they have not ended."""
        for queue in self._queues.values():
            await queue.close()
        self._queues.clear()

    def http_client(self, user_agent: str = "urlserver") -> HttpClient:
        """Return an HTTP client that sends requests to the addresses that the daemon has named.

        It tells the daemon how hosts answer, so that 429, 503 and Retry-After count, and it makes
        the target of a redirect a request of its own.
        """
        return _HttpClient(self, user_agent)

    def holder(self, request: Request) -> tuple[UrlServerRequestQueueClient, Job]:
        """Return the queue that a request was fetched from, and its job.

        Raises LookupError if it is being handled by none.
        """
        for queue in self._queues.values():
            if (job := queue.job(request)) is not None:
                return queue, job
        raise LookupError(f"not a request of a queue, or lost: {request.url}")

    def client(self, crawl: str) -> Client:
        """Return a client that gets the documents of a crawl."""
        return Client(
            self._address,
            token=self._token,
            spiderid=crawl,
            tls=self._tls,
            payload=True,
            status_timeout=self._status_timeout,
        )

    async def registered(self, key: str) -> _Registered | None:
        """Return what the registry knows of a queue."""
        record = await (await self._queues_store()).get_value(key=key)
        return _Registered(**record.value) if record is not None else None

    async def register(self, key: str, name: str | None, crawl: str) -> _Registered:
        """Let a queue be a crawl from now on."""
        now = datetime.now(timezone.utc).isoformat()
        entry = _Registered(key, name, crawl, now)
        await (await self._queues_store()).set_value(key=key, value=entry._asdict())
        return entry

    async def unregister(self, key: str, name: str | None) -> None:
        """Forget a queue. Its name has another crawl from now on, as the old one is stopped."""
        self._queues.pop(key, None)
        if name is None:
            await (await self._queues_store()).delete_value(key=key)
        else:
            await self.register(key, name, _new_crawl(key))

    async def _queues_store(self) -> KeyValueStoreClient:
        if self._registry is None:
            self._registry = await self._base.create_kvs_client(name=REGISTRY)
        return self._registry

    async def stop(self, crawl: str) -> None:
        """Stop a crawl at the daemon, so that what is left of it goes to nobody."""
        action = {
            "action": "stop",
            "appid": APPID,
            "crawlid": crawl,
            "spiderid": crawl,
            "uuid": "1",
        }
        headers = {"Content-Type": "application/json"}
        if self._http_token:
            headers["Authorization"] = "Bearer " + self._http_token
        request = urllib.request.Request(
            self._http + "/api/actions", json.dumps(action).encode(), headers
        )

        def send() -> None:
            with urllib.request.urlopen(request, timeout=30) as answer:
                answer.read()

        await asyncio.to_thread(send)


class UrlServerRequestQueueClient(RequestQueueClient):
    """A request queue that is a crawl of a URL server."""

    def __init__(self, storage: UrlServerStorageClient, entry: _Registered) -> None:
        """Make a queue of a registered crawl; open connects it."""
        self._storage, self._entry = storage, entry
        self._taken: dict[str, _Taken] = {}
        self._status: dict[str, tuple[int, str | None]] = {}
        self._known: OrderedDict[str, Request] = OrderedDict()
        self._handled: OrderedDict[str, None] = OrderedDict()
        self._fetching = asyncio.Lock()
        self._front = 0
        self._reset()

    def _reset(self) -> None:
        self._completed = 0  # as counted last
        self._ended = 0  # by this process since
        self._again = 0  # ended by this process because they were reclaimed

    async def open(self, client: Client) -> None:
        """Connect."""
        self._client = await client.__aenter__()
        self._accessed = self._modified = datetime.now(timezone.utc)
        self._completed = (await self._client.count(self._entry.crawl)).completed

    async def close(self) -> None:
        """Give back what has not ended, and end the connection."""
        self._taken.clear()
        await self._client.close()

    async def get_metadata(self) -> RequestQueueMetadata:
        """Return the counts of the crawl."""
        counts = await self._counts()
        handled = counts.completed - self._again
        pending = counts.scheduled + counts.in_flight + counts.later
        return RequestQueueMetadata(
            id=self._entry.id,
            name=self._entry.name,
            created_at=datetime.fromisoformat(self._entry.created_at),
            accessed_at=self._accessed,
            modified_at=self._modified,
            had_multiple_clients=False,
            handled_request_count=handled,
            pending_request_count=pending,
            total_request_count=handled + pending,
        )

    async def drop(self) -> None:
        """Stop the crawl and forget the queue."""
        await self._storage.stop(self._entry.crawl)
        await self._storage.unregister(self._entry.id, self._entry.name)
        await self.close()

    async def purge(self) -> None:
        """Stop the crawl, and go on with a new one under the same name."""
        if sum(await self._counts()) == 0:
            return
        await self._storage.stop(self._entry.crawl)
        await self.close()
        entry = self._entry
        self._entry = await self._storage.register(entry.id, entry.name, _new_crawl(entry.id))
        self._known.clear()
        self._handled.clear()
        self._reset()
        await self.open(self._storage.client(self._entry.crawl))

    async def add_batch_of_requests(
        self, requests: Sequence[Request], *, forefront: bool = False
    ) -> AddRequestsResponse:
        """Put requests. Those of the forefront have a priority above all before."""
        priority = self._priority(forefront)
        results = await asyncio.gather(
            *[self._put(request, priority) for request in requests], return_exceptions=True
        )
        processed: list[ProcessedRequest] = []
        unprocessed: list[UnprocessedRequest] = []
        for request, result in zip(requests, results, strict=True):
            if result == "new" or result == "known":
                processed.append(self._processed(request, known=result == "known"))
                continue
            if isinstance(result, BaseException) and not isinstance(result, (Failed, ValueError)):
                raise result
            log.warning("not put: %s: %s", request.url, result)
            unprocessed.append(
                UnprocessedRequest(
                    unique_key=request.unique_key, url=request.url, method=request.method
                )
            )
        self._modified = datetime.now(timezone.utc)
        return AddRequestsResponse(processed_requests=processed, unprocessed_requests=unprocessed)

    def _processed(self, request: Request, *, known: bool) -> ProcessedRequest:
        return ProcessedRequest(
            unique_key=request.unique_key,
            was_already_present=known,
            was_already_handled=known and request.unique_key in self._handled,
        )

    def _priority(self, forefront: bool) -> int:
        if not forefront:
            return 0
        self._front = max(self._front + 1, int(time.time()) - EPOCH)
        return self._front

    async def _put(self, request: Request, priority: int, again: int = 0) -> str:
        """Put a request that was reclaimed so often."""
        crawl = self._entry.crawl
        result = await self._client.put(
            request.url,
            crawl=crawl,
            priority=priority,
            unique=_unique(request.unique_key, again),
            metadata={"spiderid": crawl, "appid": APPID},
            payload=_pack(request, again),
        )
        if result == "new":
            self._remember(request)
        return result

    def _remember(self, request: Request) -> None:
        self._known[request.unique_key] = request
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    async def get_request(self, unique_key: str) -> Request | None:
        """Return a request that this process has put or fetched lately."""
        return self._known.get(unique_key)

    async def fetch_next_request(self) -> Request | None:
        """Return a request that may be sent now; wait some seconds for one that is pending."""
        async with self._fetching:
            self._client.room(len(self._taken) + 1)
            try:
                fetched = await self._next_request()
            finally:
                self._client.room(0)
            if fetched is None:
                return None
            job, request, again = fetched
            self._accessed = datetime.now(timezone.utc)
            self._taken[request.unique_key] = _Taken(job, again)
            self._remember(request)
            return request

    async def _next_request(self) -> tuple[Job, Request, int] | None:
        """Return a job with its request, and give back those that have none."""
        until = time.monotonic() + FETCH_WAIT
        while (job := await self._next_job(until)) is not None:
            try:
                return job, *_unpack(job)
            except ValueError as error:
                # another version may have put it: others may know what to do with it
                log.error(
                    "%s goes back for %d s, for its payload cannot be read: %s. Its crawl %s ends "
                    "when a program that can read it has ended it, when the crawl's scope denies "
                    "the URL, or when the crawl is stopped.",
                    job.url,
                    UNREADABLE,
                    error,
                    self._entry.crawl,
                )
                job.back(UNREADABLE)
        return None

    async def _next_job(self, until: float) -> Job | None:
        while time.monotonic() < until:
            if (job := self._client.take()) is not None:
                return job
            if not self._waiting(await self._counts()) and self._client.open_jobs <= self._open():
                return None
            await self._client.wait(0.05)
        return None

    def _open(self) -> int:
        """Return how many requests are being handled here."""
        return sum(not taken.job.ended for taken in self._taken.values())

    def _waiting(self, counts: Counts) -> bool:
        """Whether a request is due that nobody handles here."""
        return counts.scheduled > 0 or counts.in_flight > self._open()

    async def mark_request_as_handled(self, request: Request) -> ProcessedRequest | None:
        """End a request with the status that was noted, if any."""
        if self._end(request) is None:
            return None
        request.handled_at = request.handled_at or datetime.now(timezone.utc)
        self._remember(request)
        self._handled[request.unique_key] = None
        if len(self._handled) > REMEMBERED:
            self._handled.popitem(last=False)
        return self._processed(request, known=True)

    async def reclaim_request(
        self, request: Request, *, forefront: bool = False
    ) -> ProcessedRequest | None:
        """Put a request again as it is now, and then end the one that was fetched.

        So the daemon hears the status, and a crash in between loses nothing.
        """
        taken = self._taken.get(request.unique_key)
        if taken is None or taken.job.ended:
            return None
        result = await self._put(request, self._priority(forefront), taken.again + 1)
        if result not in ("new", "known"):
            taken.job.back()
            del self._taken[request.unique_key]
        elif self._end(request) is not None:
            self._again += 1
        return self._processed(request, known=True)

    def _end(self, request: Request) -> _Taken | None:
        """End a request, or return None if it is not being handled here."""
        taken = self._taken.pop(request.unique_key, None)
        status, retry_after = self._status.pop(request.unique_key, (None, None))
        if taken is None or not taken.job.done(status, retry_after=retry_after):
            return None
        self._ended += 1
        self._modified = datetime.now(timezone.utc)
        return taken

    def job(self, request: Request) -> Job | None:
        """Return the job of a request, or None if it is not being handled here."""
        taken = self._taken.get(request.unique_key)
        return taken.job if taken is not None and not taken.job.ended else None

    def note(self, unique_key: str, status: int, retry_after: str | None) -> None:
        """Note the status of an answer, for the DONE of the request."""
        if unique_key in self._taken:
            self._status[unique_key] = (status, retry_after)

    async def is_empty(self) -> bool:
        """Whether no request is due that nobody handles here."""
        counts = await self._counts()
        return not self._waiting(counts) and counts.later == 0

    async def is_finished(self) -> bool:
        """Whether all requests have been handled."""
        counts = await self._counts()
        return counts.finished and counts.later == 0

    async def _counts(self) -> Counts:
        """Count, and wait until what this process has ended is counted."""
        until = time.monotonic() + SETTLE_WAIT
        while True:
            ended = self._ended
            counts = await self._client.count(self._entry.crawl)
            if counts.completed >= self._completed + ended or time.monotonic() > until:
                self._completed, self._ended = counts.completed, self._ended - ended
                return counts
            await asyncio.sleep(0.005)


class _Response:
    """An answer whose body has been read."""

    def __init__(self, answer: http.client.HTTPResponse, body: bytes) -> None:
        self.http_version = "HTTP/1.1" if answer.version == 11 else "HTTP/1.0"
        self.status_code = answer.status
        self.headers = HttpHeaders(dict(answer.getheaders()))
        self._body = body

    async def read(self) -> bytes:
        return self._body

    async def read_stream(self) -> AsyncIterator[bytes]:
        yield self._body


class _HttpClient(HttpClient):
    """Sends each request to the address that the daemon has named, once.

    The target of a redirect becomes a request of its own, because it has to wait for its turn.
    """

    def __init__(self, storage: UrlServerStorageClient, user_agent: str) -> None:
        super().__init__()
        self._storage, self._agent = storage, user_agent

    async def crawl(
        self,
        request: Request,
        *,
        session: Session | None = None,
        proxy_info: ProxyInfo | None = None,
        statistics: Statistics | None = None,
        timeout: timedelta | None = None,
    ) -> HttpCrawlingResult:
        queue, job = self._storage.holder(request)
        queue.note(request.unique_key, 0, None)  # until there is an answer
        seconds = timeout.total_seconds() if timeout is not None else 30.0
        response = await asyncio.to_thread(_send, request, job, self._agent, seconds)
        status, headers = response.status_code, response.headers
        queue.note(request.unique_key, status, headers.get("retry-after"))
        request.loaded_url = job.url
        if statistics is not None:
            statistics.register_status_code(status)
        target = absolute(job.url, headers.get("location"))
        if status in (301, 302, 303, 307, 308) and target:
            await queue.add_batch_of_requests([Request.from_url(target)])
            raise ContextPipelineInterruptedError(f"redirect to {target}")
        return HttpCrawlingResult(http_response=response)

    async def send_request(self, url: str, **kwargs: Any) -> HttpResponse:
        raise NotImplementedError("only requests of the queue wait for their turn: add it there")

    def stream(self, url: str, **kwargs: Any) -> AbstractAsyncContextManager[HttpResponse]:
        raise NotImplementedError("only requests of the queue wait for their turn: add it there")

    async def cleanup(self) -> None:
        pass


def _send(request: Request, job: Job, agent: str, timeout: float) -> _Response:
    """Send a request to its job's address, and read the answer."""
    url, ip = urlsplit(job.url), job.ip
    connection: http.client.HTTPConnection
    if url.scheme == "https":
        connection = _SecureConnection(url.hostname or "", ip, url.port or 443, timeout)
    else:
        connection = http.client.HTTPConnection(ip, url.port or 80, timeout=timeout)
    with contextlib.closing(connection):
        # urllib drops an empty query, and may take "//" at the front for a host
        target = "/" + job.url.partition("#")[0].partition("://")[2].partition("/")[2]
        headers = {"User-Agent": agent, **request.headers, "Host": url.netloc.rpartition("@")[2]}
        connection.request(request.method, target, request.payload, headers)
        answer = connection.getresponse()
        return _Response(answer, answer.read())


class _SecureConnection(http.client.HTTPSConnection):
    """TLS with the name of a host, at an address."""

    def __init__(self, name: str, ip: str, port: int, timeout: float) -> None:
        self._context = ssl.create_default_context()
        super().__init__(ip, port, timeout=timeout, context=self._context)
        self._name = name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._context.wrap_socket(self.sock, server_hostname=self._name)


def _queue_id(name: str | None, alias: str) -> str:
    """Return an ID for a queue that no other one has and that a key and a crawl may be."""
    kind, text = ("name", name) if name is not None else ("alias", alias)
    clean = "".join(c if (c.isascii() and c.isalnum()) or c in "-_." else "_" for c in text)
    suffix = hashlib.sha256(f"{kind}:{text}".encode()).hexdigest()[:8]
    return f"{kind}-{clean[:24]}-{suffix}"


def _new_crawl(key: str) -> str:
    """Return a crawl for a queue that nobody has used."""
    return f"{key[:23]}.{secrets.token_hex(8)}"


def _unique(unique_key: str, again: int) -> str:
    """Return what a request is known by at the daemon, which takes up to 512 bytes."""
    if len(unique_key.encode()) > 400:
        unique_key = "sha256:" + hashlib.sha256(unique_key.encode()).hexdigest()
    return f"{unique_key} #{again}" if again else unique_key


def _pack(request: Request, again: int) -> bytes:
    """Return the payload of a request. Raises ValueError if it has more than 8 KiB."""
    text = json.dumps({"again": again, "request": request.model_dump(mode="json", by_alias=True)})
    payload = zlib.compress(text.encode())
    if len(payload) > 8192:
        raise ValueError(f"the request has {len(payload)} bytes when packed; 8192 are allowed")
    return payload


def _unpack(job: Job) -> tuple[Request, int]:
    """Return the request of a job, and how often it was reclaimed.

    Raises ValueError if the payload is none of _pack.
    """
    if job.payload is None:  # put by somebody else, or the target of a redirect
        return Request.from_url(job.url), 0
    try:
        packed = json.loads(zlib.decompress(job.payload))
        return Request.model_validate(packed["request"]), int(packed["again"])
    except Exception as error:  # of zlib, of JSON, or of what it has in it
        raise ValueError(f"not a request: {error!r}") from error
