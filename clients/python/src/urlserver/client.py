"""The asyncio client."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import random
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import urlsplit

from . import wire
from .job import Job
from .pace import Pauses, Spacing
from .session import Session

if TYPE_CHECKING:
    from typing_extensions import Unpack

log = logging.getLogger("urlserver")

MAX_UNANSWERED = 256
"""PUT and COUNT lines on a connection that have no answer yet."""

LOOKS_PER_STALL = 8
"""How often the clocks are read in the time that counts as a stall."""

COUNT_EVERY = 0.2
"""Seconds between two COUNT lines while a client waits for the end of a crawl."""

FAILED_PAUSE = 5.0
"""Seconds to wait after a COUNT that failed."""

CONNECT_TIMEOUT = 15.0
LEAVE_TIMEOUT = 5.0


class Failed(RuntimeError):
    """The daemon could not store or count now, or has no doc index of its own."""


class ClientClosed(RuntimeError):
    """The client was closed."""


class Members(TypedDict, total=False):
    """What a put may carry beside its URL. docs/reference/http-api.md describes the members."""

    doc_id: str
    priority: int
    crawl: str
    key: str
    metadata: Mapping[str, str | list[str]]
    unique: str
    """What the document is known by instead of its URL; up to 512 bytes."""
    payload: bytes
    """What spiders that ask for payloads get with the document; up to 8 KiB."""
    via: str
    """The doc_id of the page that the link stood on."""
    depth: int
    due: str
    """When it is due: "now", or a time as in RFC 3339."""


class Options(TypedDict, total=False):
    """What Client takes beside the address; its constructor tells the meaning."""

    token: str
    spiderid: str
    tls: ssl.SSLContext | bool
    payload: bool
    status_timeout: float


class _Ask:
    """A PUT or COUNT. It is sent on each connection until it has an answer."""

    def __init__(self, line: bytes, answer: asyncio.Future[wire.PutAnswer | wire.CountAnswer]):
        self.line, self.answer = line, answer


class Client:
    """A spider of one daemon, over one connection, for asyncio.

    ``async with Client("127.0.0.1:4101") as client:`` connects in the background, and again, with
    pauses, whenever the connection ends. What was asked and has no answer is asked again on the
    next connection. The jobs of the last one are lost, and the daemon sends them again.

    All methods are for the event loop's thread. No job comes before jobs or room is called.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str = "",
        spiderid: str = "",
        tls: ssl.SSLContext | bool = False,
        payload: bool = False,
        status_timeout: float = 120.0,
    ) -> None:
        """Make a client of the daemon at address, HOST:PORT, its spider.listen.

        token is the daemon's spider.token. With a spiderid, only its documents come. tls is True
        for the system's certificates, or a context. payload asks for what was put with documents.
        status_timeout is the daemon's Timeout_Spider_Status: WORKING is sent every half of it.

        Raises ValueError if one of them cannot be used.
        """
        self._host, self._port = split_address(address)
        self._tls = ssl.create_default_context() if tls is True else tls or None
        if not status_timeout > 0:
            raise ValueError(f"status_timeout {status_timeout}: has to be above 0")
        self._half = status_timeout / 2
        self._payload = payload
        self._greeting = wire.greeting(token, spiderid, payload)
        self._room = 0
        self._session: Session | None = None
        self._spacing = Spacing()
        self._tag = 0
        self._sent: dict[str, _Ask] = {}  # on this connection, without an answer; in order
        self._unsent: deque[tuple[str, _Ask]] = deque()
        self._takers: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._started = self._closed = False
        self.on_job: Callable[[], object] | None = None
        """Called in the event loop when take may return a job where it returned None before."""

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self._session is not None

    @property
    def open_jobs(self) -> int:
        """How many jobs of this client have not ended, those that nobody has taken included."""
        return len(self._session.open) if self._session else 0

    async def __aenter__(self) -> Client:
        """Begin to connect, in the background."""
        if not self._started:
            self._started = True
            self._tasks.append(asyncio.create_task(self._keep_connected()))
            self._tasks.append(asyncio.create_task(self._keep_working()))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the client."""
        await self.close()

    async def close(self) -> None:
        """Give back what has not ended, and end the connection and all that waits for it."""
        if self._closed:
            return
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        session, self._session = self._session, None
        if session is not None:
            session.leave()
            await asyncio.wait([session.closed], timeout=LEAVE_TIMEOUT)
            session.end("closed")
        for ask in [*self._sent.values(), *(ask for _, ask in self._unsent)]:
            if not ask.answer.done():
                ask.answer.set_exception(ClientClosed("the client was closed"))
        if self._timer is not None:
            self._timer.cancel()
        self._wake_all()

    def _check(self) -> None:
        if self._closed:
            raise ClientClosed("the client was closed")
        if not self._started:
            raise RuntimeError("enter the client first: async with client")

    # Jobs

    def room(self, most: int) -> None:
        """Let at most so many jobs be here from now on; 0: none come for now."""
        if most < 0:
            raise ValueError(f"room {most}: has to be at least 0")
        self._check()
        self._room = most
        if self._session is not None:
            self._session.say(wire.room(most))

    def jobs(
        self, room: int = 1, *, until_finished: bool = False, crawl: str = ""
    ) -> AsyncIterator[Job]:
        """Return an iterator of jobs, and let at most room of them be here.

        Several tasks may iterate over it at one time, and each job goes to one of them. It ends
        when the client is closed. With until_finished, it ends when the daemon has nothing left
        that is due now or in flight: of a crawl, or of all crawls if crawl is empty.
        """
        self.room(room)
        return _Jobs(self, until_finished, crawl)

    async def each(
        self,
        handle: Callable[[Job], Awaitable[object]],
        room: int = 32,
        *,
        until_finished: bool = False,
        crawl: str = "",
    ) -> None:
        """Await handle(job) inside ``async with job`` for each job, up to room at one time.

        Ends as jobs does. If handle raises, its job and all others are given back, and the error
        is raised here.
        """
        jobs = self.jobs(room, until_finished=until_finished, crawl=crawl)

        async def work() -> None:
            async for job in jobs:
                async with job:
                    await handle(job)

        tasks = [asyncio.ensure_future(work()) for _ in range(room)]
        try:
            await asyncio.gather(*tasks)
        finally:
            self.room(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def take(self) -> Job | None:
        """Return the next job, or None if none may begin now. It should begin at once."""
        session = self._session
        if session is None or not session.awake():
            return None
        now, first = time.monotonic(), None
        for place, job in enumerate(session.ready):
            wait = self._spacing.wait(job.ip, job.arrived, now)
            if wait <= 0:
                del session.ready[place]
                self._spacing.taken(job.ip, job.arrived, now)
                if session.ready:
                    self._wake_one()
                return job
            first = wait if first is None else min(first, wait)
        if first is not None:
            self._announce_after(first)
        return None

    async def next_job(self) -> Job:
        """Wait for the next job. Raises ClientClosed when the client is closed."""
        while not self._closed:
            if (job := self.take()) is not None:
                return job
            await self._wait()
        raise ClientClosed("the client was closed")

    # Puts and counts

    async def put(self, url: str, **members: Unpack[Members]) -> str:
        """Store a URL, and return what became of it.

        "new" or "known": the daemon has it for good. "invalid": it cannot be used. "out_of_scope":
        its crawl does not take it. Raises Failed if it was not stored and may be put again later,
        and ValueError if no line can hold it. If the connection ends meanwhile, it is put again on
        the next one.
        """
        return await self.submit(url, **members)

    async def put_all(self, urls: Iterable[str], **members: Unpack[Members]) -> list[str]:
        """Store URLs that have the same members, and return what became of each."""
        return list(await asyncio.gather(*[self.submit(url, **members) for url in urls]))

    def submit(self, url: str, **members: Unpack[Members]) -> asyncio.Future[str]:
        """Begin a put, and return its future result, in the order of the calls."""
        fields = _fields(url, members)
        result: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def settle(answer: asyncio.Future[wire.PutAnswer | wire.CountAnswer]) -> None:
            error = None if answer.cancelled() else answer.exception()
            if result.done():
                return
            if answer.cancelled():
                result.cancel()
            elif error is not None:
                result.set_exception(error)
            elif isinstance(said := answer.result(), wire.PutAnswer) and said.result != "fail":
                result.set_result(said.result)
            else:
                result.set_exception(Failed(f"not stored: {url}"))

        self._ask(lambda tag: wire.put(tag, fields)).add_done_callback(settle)
        return result

    async def count(self, crawl: str = "") -> wire.Counts:
        """Return how many documents a crawl has, or all crawls have if crawl is empty.

        What this client put before counts. Raises Failed if the daemon cannot count now.
        """
        answer = await self._ask(lambda tag: wire.count(tag, crawl))
        if not isinstance(answer, wire.CountAnswer) or answer.counts is None:
            raise Failed("not counted")
        return answer.counts

    def _ask(
        self, line: Callable[[str], bytes]
    ) -> asyncio.Future[wire.PutAnswer | wire.CountAnswer]:
        self._check()
        self._tag += 1
        tag = str(self._tag)
        ask = _Ask(line(tag), asyncio.get_running_loop().create_future())
        self._unsent.append((tag, ask))
        self._send_asks()
        return ask.answer

    def _send_asks(self) -> None:
        while self._session is not None and self._unsent and len(self._sent) < MAX_UNANSWERED:
            tag, ask = self._unsent.popleft()
            self._sent[tag] = ask
            self._session.say(ask.line)

    # What a session tells

    def began(self, session: Session) -> None:
        """Say the first lines, and ask what has no answer. For the session."""
        if self._closed:
            session.end("closed")
            return
        self._session = session
        session.say(self._greeting + wire.room(self._room))
        self._send_asks()

    def arrived(self) -> None:
        """Wake one that waits for a job. For the session."""
        self._wake_one()
        if self.on_job is not None:
            self.on_job()

    def answered(self, answer: wire.PutAnswer | wire.CountAnswer) -> None:
        """Pass an answer to whoever asked. For the session."""
        ask = self._sent.pop(answer.tag, None)
        if ask is not None and not ask.answer.done():
            ask.answer.set_result(answer)
        self._send_asks()

    # Waiting for jobs

    async def wait(self, seconds: float) -> None:
        """Wait until take may return a job that it did not before, or the time is over."""
        waiting = asyncio.ensure_future(self._wait())
        await asyncio.wait([waiting], timeout=seconds)
        waiting.cancel()

    def _announce_after(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self.arrived)

    async def _wait(self) -> None:
        """Wait until take may return a job, or the reason to wait has gone."""
        taker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        try:
            await taker
        except asyncio.CancelledError:
            if taker.done() and not taker.cancelled():
                self._wake_one()  # another one takes what this one was woken for
            raise
        finally:
            with contextlib.suppress(ValueError):
                self._takers.remove(taker)

    def _wake_one(self) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return

    def _wake_all(self) -> None:
        while self._takers:
            self._wake_one()

    # Connections

    async def _keep_connected(self) -> None:
        """Connect, and again whenever the connection has ended."""
        pauses = Pauses()
        while True:
            reason = await self._connection()
            session, self._session = self._session, None
            self._unsent.extendleft(reversed(self._sent.items()))  # to be asked again
            self._sent.clear()
            pause = pauses.next(useful=session is not None and session.useful)
            pause *= random.uniform(0.5, 1.0)
            log.warning("%s:%d: %s; connecting in %.1f s", self._host, self._port, reason, pause)
            await asyncio.sleep(pause)

    async def _connection(self) -> str:
        """Connect, wait until the connection ends, and return why."""
        loop = asyncio.get_running_loop()
        connecting = asyncio.ensure_future(
            loop.create_connection(
                lambda: Session(self, self._half, self._payload),
                self._host,
                self._port,
                ssl=self._tls,
                server_hostname=self._host if self._tls else None,
            )
        )
        try:  # wait_for swallows a cancellation in Python 3.10 and 3.11 (bpo-37658)
            await asyncio.wait([connecting], timeout=CONNECT_TIMEOUT)
        finally:
            connecting.add_done_callback(lambda task: task.cancelled() or task.exception())
            connecting.cancel()
        if not connecting.done():
            return "no answer"
        try:
            _, session = connecting.result()
        except (OSError, UnicodeError) as err:  # UnicodeError: the address is no name
            return str(err) or type(err).__name__
        reason = await asyncio.shield(session.closed)
        if not session.useful:
            reason += " before it said anything; are token and TLS as its settings want them?"
        return reason

    async def _keep_working(self) -> None:
        """Read the clocks and send WORKING, until the client is closed."""
        while True:
            if self._session is not None and self._session.awake():
                self._session.beat()
            await asyncio.sleep(self._half / LOOKS_PER_STALL)

    async def _until_finished(self, crawl: str) -> None:
        """Wait until the daemon has nothing left that is due now or in flight."""
        while True:
            await asyncio.sleep(COUNT_EVERY)
            if self.open_jobs > 0 or not self.connected:
                continue
            try:
                if (await self.count(crawl)).finished:
                    return
            except Failed:
                log.warning("the daemon does not say whether the crawl has finished")
                await asyncio.sleep(FAILED_PAUSE)


def _fields(url: str, members: Members) -> dict[str, object]:
    """Return a put's JSON members."""
    fields: dict[str, object] = {"url": url, **members}
    if (payload := members.get("payload")) is not None:
        fields["payload"] = base64.b64encode(payload).decode("ascii")
    if (metadata := members.get("metadata")) is not None:
        fields["metadata"] = {
            key: [value] if isinstance(value, str) else value for key, value in metadata.items()
        }
    return fields


class _Jobs:
    """An iterator of jobs for any number of tasks."""

    def __init__(self, client: Client, until_finished: bool, crawl: str) -> None:
        self._client, self._crawl = client, crawl
        self._wants_end = until_finished
        self._end: asyncio.Task[None] | None = None

    def __aiter__(self) -> _Jobs:
        return self

    async def __anext__(self) -> Job:
        client = self._client
        if self._wants_end and self._end is None:
            self._end = asyncio.create_task(client._until_finished(self._crawl))
            self._end.add_done_callback(lambda _: client._wake_all())
            client._tasks.append(self._end)
        while not client._closed:
            if self._end is not None and self._end.done():
                break
            if (job := client.take()) is not None:
                return job
            await client._wait()
        if self._end is not None and not client._closed:
            self._end.result()  # raises what counting raised
        raise StopAsyncIteration


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of an address as 127.0.0.1:4101. Raises ValueError if it is none."""
    try:
        parts = urlsplit("//" + address)
        if parts.hostname and parts.port and not (parts.path or parts.query or parts.username):
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise ValueError(f"address {address!r}: HOST:PORT is wanted, as in 127.0.0.1:4101")
