"""The connection to the daemon, in a thread of its own.

So the client says WORKING also while a callback of the spider keeps the reactor busy, and any of
Twisted's reactors will do.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import urlserver
from urlserver.pace import Spacing

logger = logging.getLogger(__name__)

WAIT = 2.0  # seconds that a job may wait for the engine, which has paused or has enough to do
FLUSH = 10.0  # seconds that closing waits for answers to what was put
AGAIN = 1.0  # seconds until a URL is put again that the daemon could not store
COUNT_EVERY = (
    0.01,
    1.0,
)  # seconds between counts while nothing is open here: the first, the longest


class Connection:
    """Puts documents, receives jobs and ends them, for one crawl. One other thread calls its public
    methods; on_news is called by the connection's own."""

    def __init__(
        self, client: urlserver.Client, crawl: str, room: int, on_news: Callable[[], None]
    ):
        self.dropped: deque[tuple[Any, str]] = (
            deque()
        )  # what was put and not taken, with the answer
        self._client, self._crawl, self._room, self._on_news = client, crawl, room, on_news
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="urlserver", daemon=True)
        self._commands: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._lock = threading.Lock()  # for _jobs
        self._jobs: list[
            tuple[float, urlserver.Job]
        ] = []  # not begun, with the time since which they wait
        # Written by the other thread.
        self._spacing = Spacing()
        self._held = True  # the engine has not asked for requests
        self._posted = 0  # documents put
        # Written by the connection's thread.
        self._entered = False  # the client; before, commands wait
        self._answered = 0  # of the documents put
        self._finished = False  # nothing of the crawl was left when it was last counted
        self._number = 0
        self._puts: dict[int, None] = {}  # the numbers of those without an answer, in order
        self._ends: deque[tuple[int, Callable[[], object]]] = (
            deque()
        )  # of jobs, with the last put before
        self._pause = COUNT_EVERY[0]  # until the next count
        self._settled = asyncio.Event()  # no put is without an answer, or the pause is over
        self._closing = asyncio.Event()
        self._failing = False  # the daemon could not store the last put

    # For the other thread

    def start(self) -> None:
        self._thread.start()

    def put(self, document: dict[str, Any], origin: Any) -> None:
        """Puts a document. If it is not taken, (origin, answer) is added to dropped."""
        self._posted += 1
        self._post(self._put, document, origin)

    def next(self) -> urlserver.Job | None:
        """Returns a job that is to begin now, or None."""
        if self._held:
            self._held = False
            self._post(self._client.room, self._room)
        now, first = time.monotonic(), None
        with self._lock:
            for place, (_, job) in enumerate(self._jobs):
                if job.lost:
                    continue
                wait = self._spacing.wait(job.ip, job.arrived, now)
                if wait <= 0:
                    del self._jobs[place]
                    self._spacing.taken(job.ip, job.arrived, now)
                    return job
                first = min(wait, first or wait)
        if first is not None:  # the one before it at its address has begun late
            self._post(self._loop.call_later, first, self._on_news)
        return None

    def done(self, job: urlserver.Job, status: int | None = None, **answer: Any) -> None:
        """Ends a job when all that was put before has been answered."""
        self._post(self._end, lambda: job.done(status, **answer))

    def back(self, job: urlserver.Job, seconds: float) -> None:
        self._post(job.back, seconds)

    def pending(self) -> bool:
        """Tells whether the crawl may have documents that this process has not begun."""
        return bool(self._jobs) or self._posted != self._answered or not self._finished

    def count(self, timeout: float) -> urlserver.Counts:
        """Counts the crawl's documents, with all that was put before."""
        counting = asyncio.run_coroutine_threadsafe(self._count(), self._loop)
        return counting.result(timeout)

    def close(self) -> None:
        """Says what has ended, gives back what was not begun, and ends the connection."""
        self._post(self._closing.set)
        self._thread.join(2 * FLUSH)

    def _post(self, command: Callable[..., object], *args: Any) -> None:
        self._commands.append((command, args))
        if len(self._commands) == 1:  # otherwise the loop has been woken already
            self._loop.call_soon_threadsafe(self._run_commands)

    # The connection's thread

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except Exception:
            logger.exception("The thread of the connection to the URL server has failed")
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._client.on_job = self._receive
        async with self._client:
            self._entered = True
            self._run_commands()
            tasks = [
                asyncio.create_task(work)
                for work in (self._give_back_stale(), self._watch_counts())
            ]
            await self._closing.wait()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._client.room(0)
            deadline = self._loop.time() + FLUSH
            while (self._ends or self._puts) and self._loop.time() < deadline:
                await asyncio.sleep(0.01)

    def _run_commands(self) -> None:
        while self._entered and self._commands:
            command, args = self._commands.popleft()
            try:
                command(*args)
            except Exception:
                logger.exception("An order to the URL server has failed")

    def _receive(self) -> None:
        now, jobs = time.monotonic(), []
        while (job := self._client.take()) is not None:
            jobs.append((now, job))
        if jobs:
            self._finished = False
            with self._lock:
                self._jobs = [entry for entry in self._jobs if not entry[1].lost] + jobs
            self._on_news()

    async def _give_back_stale(self) -> None:
        """Gives jobs back that the engine does not ask for, and takes none until it asks again."""
        while True:
            await asyncio.sleep(WAIT / 2)
            if self._jobs and time.monotonic() - self._jobs[0][0] > WAIT:
                with self._lock:
                    stale, self._jobs = self._jobs, []
                self._client.room(0)
                self._held = True
                for _, job in stale:
                    job.back()

    # Puts, and the ends of jobs behind them

    def _put(self, document: dict[str, Any], origin: Any) -> None:
        self._number += 1
        self._puts[self._number] = None
        self._submit(self._number, document, origin)

    def _submit(self, number: int, document: dict[str, Any], origin: Any) -> None:
        try:
            answer = self._client.submit(**document)
        except ValueError as error:  # no line can hold it
            self._settle(number, origin, str(error))
            return

        def answered(answer: asyncio.Future[str]) -> None:
            if answer.cancelled() or isinstance(answer.exception(), urlserver.ClientClosed):
                return
            if answer.exception() is None:
                self._failing = False
                self._settle(number, origin, answer.result())
                return
            if not self._failing:
                logger.warning("The URL server does not store requests now; they are put again")
            self._failing = True
            self._loop.call_later(AGAIN, self._submit, number, document, origin)

        answer.add_done_callback(answered)

    def _settle(self, number: int, origin: Any, result: str) -> None:
        del self._puts[number]
        if result != "new":
            self.dropped.append((origin, result))
            self._on_news()
        self._finished = False
        self._answered += 1
        self._end_settled()

    def _end(self, end: Callable[[], object]) -> None:
        self._ends.append((self._number, end))
        self._end_settled()

    def _end_settled(self) -> None:
        """Ends the jobs before whose end all has been stored."""
        first = next(iter(self._puts), None)
        while self._ends and (first is None or self._ends[0][0] < first):
            self._ends.popleft()[1]()
        if not self._puts:
            self._pause = COUNT_EVERY[0]
            self._settled.set()

    # Counts

    async def _count(self) -> urlserver.Counts:
        return await self._client.count(self._crawl)

    async def _watch_counts(self) -> None:
        """Counts the crawl's documents while nothing of it is open here."""
        while True:
            self._settled.clear()
            if self._client.open_jobs == 0 and not self._puts and self._client.connected:
                await self._look_whether_finished()
            timer = self._loop.call_later(self._pause, self._settled.set)
            self._pause = min(2 * self._pause, COUNT_EVERY[1])
            await self._settled.wait()
            timer.cancel()

    async def _look_whether_finished(self) -> None:
        answered = self._answered
        try:
            counts = await self._count()
        except urlserver.Failed:
            logger.warning("The URL server does not count the documents of crawl %s", self._crawl)
            return
        if answered != self._answered or self._client.open_jobs > 0 or self._puts:
            return
        finished = counts.scheduled + counts.in_flight + counts.later == 0
        if finished != self._finished:
            self._finished = finished
            self._on_news()
