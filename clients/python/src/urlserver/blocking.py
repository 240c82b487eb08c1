"""The client for programs without asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from .client import Client, ClientClosed, Members, Options
from .job import Answer, Job
from .wire import Counts

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class BlockingJob:
    """A document to be fetched: a Job for programs without asyncio.

    ``with job:`` calls done() behind the body, and back() if the body raises, unless the job has
    ended by then. A body goes on if its job is lost; it should look at lost before a request.
    """

    def __init__(self, client: BlockingClient, job: Job) -> None:
        """Wrap a job."""
        self._client, self._job = client, job
        self.doc_id, self.ip, self.url, self.payload = job.doc_id, job.ip, job.url, job.payload

    def __repr__(self) -> str:
        """Return what names the job."""
        return repr(self._job)

    @property
    def lost(self) -> bool:
        """Whether the connection ended before the job did."""
        return self._job.lost

    @property
    def ended(self) -> bool:
        """Whether done or back was called, or the job is lost."""
        return self._job.ended

    def done(self, status: int | None = None, **answer: Unpack[Answer]) -> bool:
        """End the job as Job.done does."""

        async def done() -> bool:
            return self._job.done(status, **answer)

        return self._client.call(done())

    def back(self, seconds: float = 0) -> bool:
        """End the job as Job.back does."""

        async def back() -> bool:
            return self._job.back(seconds)

        return self._client.call(back())

    def working(self) -> bool:
        """Tell the daemon that the fetch goes on. The client does that by itself."""

        async def working() -> bool:
            return self._job.working()

        return self._client.call(working())

    def __enter__(self) -> BlockingJob:
        """Begin the body."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the job unless the body did, or the client has been closed."""
        if self.ended:
            return
        with contextlib.suppress(ClientClosed):
            if kind is None:
                self.done()
            else:
                self.back()


class BlockingClient:
    """A spider of one daemon, over one connection, whose methods wait.

    ``with BlockingClient("127.0.0.1:4101") as client:`` runs a Client in a thread of its own, which
    sends WORKING while the program's bodies run. The methods are those of Client, and may be
    called by several threads at one time.
    """

    def __init__(self, address: str, **options: Unpack[Options]) -> None:
        """Make a client as Client does."""
        self._client = Client(address, **options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # guards the end of the loop against calls

    def __enter__(self) -> BlockingClient:
        """Begin to connect, in the background."""
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=loop.run_forever, name="urlserver", daemon=True)
        self._thread.start()
        self.call(self._client.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()

    def close(self) -> None:
        """Give back what has not ended, and end the connection and all that waits for it."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self.call(self._client.close())
        with self._lock:
            self._loop = self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(asyncio.sleep(0))  # what waits hears that the client was closed
        loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the client's thread, and return its result."""
        with self._lock:
            if self._loop is None:
                work.close()
                raise ClientClosed("the client is not open")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self._client.connected

    @property
    def open_jobs(self) -> int:
        """How many jobs of this client have not ended."""
        return self._client.open_jobs

    def room(self, most: int) -> None:
        """Let at most so many jobs be here from now on; 0: none come for now."""

        async def room() -> None:
            self._client.room(most)

        self.call(room())

    def jobs(
        self, room: int = 1, *, until_finished: bool = False, crawl: str = ""
    ) -> Iterator[BlockingJob]:
        """Return an iterator of jobs as Client.jobs does.

        Several threads may iterate over it at one time; room should be their number.
        """

        async def jobs() -> AsyncIterator[Job]:
            return self._client.jobs(room, until_finished=until_finished, crawl=crawl)

        return _Jobs(self, self.call(jobs()))

    def next_job(self) -> BlockingJob:
        """Wait for the next job. Raises ClientClosed when the client is closed."""
        return BlockingJob(self, self.call(self._client.next_job()))

    def put(self, url: str, **members: Unpack[Members]) -> str:
        """Store a URL, and return what became of it, as Client.put does."""
        return self.call(self._client.put(url, **members))

    def put_all(self, urls: Iterable[str], **members: Unpack[Members]) -> list[str]:
        """Store URLs that have the same members, and return what became of each."""
        return self.call(self._client.put_all(urls, **members))

    def count(self, crawl: str = "") -> Counts:
        """Return how many documents a crawl has, as Client.count does."""
        return self.call(self._client.count(crawl))


class _Jobs:
    """An iterator of jobs for any number of threads."""

    def __init__(self, client: BlockingClient, jobs: AsyncIterator[Job]) -> None:
        self._client, self._jobs = client, jobs

    def __iter__(self) -> _Jobs:
        return self

    def __next__(self) -> BlockingJob:
        async def following() -> Job | None:
            async for job in self._jobs:
                return job
            return None

        try:
            job = self._client.call(following())
        except ClientClosed:
            job = None
        if job is None:
            raise StopIteration
        return BlockingJob(self._client, job)
