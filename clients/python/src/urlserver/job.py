"""A document that the daemon has sent, until it ends."""

from __future__ import annotations

import asyncio
import sys
from typing import Protocol, TypedDict

from . import wire


class JobEnded(RuntimeError):
    """The job has ended before: done and back may be called once."""


class Answer(TypedDict, total=False):
    """What Job.done takes beside the status; it tells the meaning."""

    retry_after: float | str | None
    changed: bool | None
    bytes: int | None
    location: str | None


class Connection(Protocol):
    """What a job needs of the connection that it came on."""

    def say(self, line: bytes) -> None:
        """Send a line soon."""

    def ended(self, job: Job) -> None:
        """Forget a job that has ended, before its last line is sent."""


class Job:
    """A document to be fetched from ip, at once, with one request.

    It ends exactly once: by done, by back, or because its connection ended; then lost is true, the
    daemon sends the document again, and what is said about this job does nothing. Until then the
    client sends WORKING by itself.

    ``async with job:`` calls done() behind the body, and back() if the body raises, unless the job
    has ended by then. If the job is lost, the body is cancelled, because another spider may have
    the document by now; the program goes on behind the body.

    A job is not safe for use by several threads.
    """

    def __init__(self, connection: Connection, fetch: wire.Fetch, arrived: float) -> None:
        """Make a job of a line that came at a time of the monotonic clock."""
        self.doc_id = fetch.doc_id
        """The doc index's name for the document, for the via of its links."""
        self.ip = fetch.ip
        """The address to connect to. The port is the URL's; so are Host and TLS server name."""
        self.url = fetch.url
        """The URL to fetch."""
        self.payload = fetch.payload
        """What was put with the document; None if nothing was, or payloads were not asked for."""
        self.arrived = arrived
        """When the line came, by time.monotonic()."""
        self.lost = False
        """Whether the connection ended before the job did."""
        self.ended = False
        """Whether done or back was called, or the job is lost."""
        self.spoke = arrived
        self._connection = connection
        self._trans_id = fetch.trans_id
        self._task: asyncio.Task[object] | None = None
        self._cancelled = False
        self._cancelling = 0

    def __repr__(self) -> str:
        """Return what names the job."""
        return f"<Job {self._trans_id} {self.url}>"

    def done(
        self,
        status: int | None = None,
        *,
        retry_after: float | str | None = None,
        changed: bool | None = None,
        bytes: int | None = None,
        location: str | None = None,
    ) -> bool:
        """End the job: it was fetched, well or not.

        status is the HTTP status, 0 if the host gave no answer. retry_after and location may be
        the headers as they came. changed says whether the content is another than last time,
        bytes is the length of the body. Put links before, and wait for it: what is done is not
        sent again.

        Returns False if the job is lost. Raises JobEnded if it has ended otherwise, and ValueError
        if the status is no HTTP status.
        """
        line = wire.done(
            self._trans_id,
            status,
            wire.retry_seconds(retry_after),
            changed,
            bytes,
            wire.absolute(self.url, location),
        )
        return self._end(line)

    def back(self, seconds: float = 0) -> bool:
        """End the job: it was not fetched. It goes to another spider, or not before seconds.

        That counts no attempt. Returns False if the job is lost. Raises JobEnded if it has ended
        otherwise.
        """
        return self._end(wire.back(self._trans_id, seconds))

    def working(self) -> bool:
        """Tell the daemon that the fetch goes on. The client does that by itself.

        Returns False if the job has ended.
        """
        if not self.ended:
            self._connection.say(wire.working(self._trans_id))
        return not self.ended

    def _end(self, line: bytes) -> bool:
        if self.lost:
            return False
        if self.ended:
            raise JobEnded(repr(self))
        self.ended = True
        self._connection.ended(self)
        self._connection.say(line)
        return True

    def lose(self) -> None:
        """End the job because its connection has ended. For the client."""
        self.lost = self.ended = True
        if self._task is not None:
            self._cancelled = self._task.cancel()

    async def __aenter__(self) -> Job:
        """Begin the body."""
        self._task = asyncio.current_task()
        self._cancelling = _cancelling(self._task)
        if self.lost and self._task is not None:
            self._cancelled = self._task.cancel()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        """End the job unless the body did."""
        task, self._task = self._task, None
        if not self.ended:
            if kind is None:
                self.done()
            else:
                self.back()
        if not self._cancelled:
            return False
        if kind is None:  # the cancellation may not have reached the body
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                if not self._uncancel(task):
                    raise
            else:
                self._uncancel(task)
            return False
        return self._uncancel(task) and kind is asyncio.CancelledError

    def _uncancel(self, task: asyncio.Task[object] | None) -> bool:
        """Take the client's cancellation back. Returns whether nobody else cancelled the task."""
        if sys.version_info >= (3, 11) and task is not None:
            return task.uncancel() <= self._cancelling
        return True


def _cancelling(task: asyncio.Task[object] | None) -> int:
    """Return how many cancellations of a task are under way."""
    if sys.version_info >= (3, 11) and task is not None:
        return task.cancelling()
    return 0
