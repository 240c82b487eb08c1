"""One connection to a daemon: its jobs, their WORKING lines, and the watch for stalls."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from typing import Protocol

from . import wire
from .job import Job
from .pace import StallWatch

MAX_BAD_LINES = 100
"""Lines in a row that have no valid form, after which the connection ends."""


class Owner(Protocol):
    """What a session tells its client, in the event loop."""

    def began(self, session: Session) -> None:
        """Say the first lines."""

    def arrived(self) -> None:
        """Note that a job is ready."""

    def answered(self, answer: wire.PutAnswer | wire.CountAnswer) -> None:
        """Take an answer."""


class Session(asyncio.Protocol):
    """A connection, from its first line to its end. When it ends, its open jobs are lost."""

    def __init__(self, owner: Owner, half: float, payload: bool) -> None:
        """Make a session. half is half of the daemon's status timeout, in seconds."""
        self.ready: deque[Job] = deque()
        """Jobs that nobody has taken."""
        self.open: dict[Job, None] = {}
        """Jobs that have not ended; the one that has said nothing for the longest comes first."""
        self.useful = False
        """Whether the daemon has sent any valid line."""
        loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[str] = loop.create_future()
        """Ends with the reason when the connection does."""
        self._loop, self._owner, self._half, self._payload = loop, owner, half, payload
        self._lines = wire.Lines()
        self._bad = 0
        self._out = bytearray()
        self._flushing = False
        self._stuck: float | None = None  # since when the daemon has read nothing
        self._watch = StallWatch(half, time.monotonic(), time.time())
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        _keep_alive(transport)
        self._owner.began(self)

    def data_received(self, data: bytes) -> None:
        """Handle the lines that data completes, unless the process stood still before."""
        if not self.awake():
            return
        try:
            lines = self._lines.feed(data)
        except ValueError as err:
            self.end(str(err))
            return
        for line in lines:
            self._handle(line)
            if self.closed.done():
                return

    def _handle(self, line: bytes) -> None:
        said = wire.parse(line, payload=self._payload)
        if said is None:
            self._bad += 1
            if self._bad >= MAX_BAD_LINES:
                self.end(f"{MAX_BAD_LINES} lines in a row that are none of the protocol's")
            return
        self._bad, self.useful = 0, True
        if not isinstance(said, wire.Fetch):
            self._owner.answered(said)
            return
        job = Job(self, said, time.monotonic())
        self.open[job] = None
        self.ready.append(job)
        self._owner.arrived()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end of the connection."""
        self._over(str(exc) if exc else "the daemon ended the connection")

    def pause_writing(self) -> None:
        """Note that the daemon does not read."""
        self._stuck = time.monotonic()

    def resume_writing(self) -> None:
        """Note that the daemon reads again."""
        self._stuck = None

    def say(self, line: bytes) -> None:
        """Send a line, together with others that are said before the event loop runs again."""
        self._out += line
        if not self._flushing and not self.closed.done():
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self._transport is not None and self._out and not self._transport.is_closing():
            self._transport.write(bytes(self._out))
        self._out.clear()

    def ended(self, job: Job) -> None:
        """Forget a job that has ended."""
        self.open.pop(job, None)

    def awake(self) -> bool:
        """Read the clocks, and end the session after a stall. Returns whether it still goes on."""
        if self._watch.stalled(time.monotonic(), time.time()):
            self.end("this process stood still for over half of the status timeout")
        return not self.closed.done()

    def beat(self) -> None:
        """Send WORKING for each job that has said nothing for half of the status timeout."""
        now = time.monotonic()
        if self._stuck is not None and now - self._stuck > self._half:
            self.end("the daemon reads nothing")
        while self.open and not self.closed.done():
            job = next(iter(self.open))
            if now - job.spoke < self._half:
                return
            del self.open[job]
            self.open[job] = None
            job.spoke = now
            job.working()

    def end(self, reason: str) -> None:
        """End the connection at once. What was read and not handled is dropped."""
        if self._transport is not None:
            self._transport.abort()
        self._over(reason)

    def _over(self, reason: str) -> None:
        if self.closed.done():
            return
        self.closed.set_result(reason)
        jobs = list(self.open)
        self.open.clear()
        self.ready.clear()
        for job in jobs:
            job.lose()

    def leave(self) -> None:
        """Give all open jobs back and tell the daemon that nothing more comes.

        The connection ends when the daemon has read it.
        """
        self.say(b"ROOM 0\n")
        for job in list(self.open):
            job.back()
            job.lose()
        self.ready.clear()
        self._flush()
        if self._transport is None:
            self._over("left")
        elif self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
        else:
            self._transport.close()


def _keep_alive(transport: asyncio.Transport) -> None:
    """Let the system find out that the daemon's machine has gone, within some three minutes."""
    sock = transport.get_extra_info("socket")
    for level, option, value in [
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 60),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 30),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", 4),
    ]:
        if hasattr(socket, option):
            sock.setsockopt(level, getattr(socket, option), value)
