"""How fast a broad crawl is: with Scrapy's DownloaderAwarePriorityQueue and with the daemon.

rate.py [ROUNDS] crawls 1,000 hosts on loopback, in turns, and prints a table of medians. Politeness
does not bound the rate here: 8 requests to a host at one time, without a pause. 4 processes share
one crawl of the daemon; Scrapy's queue is of one process. $URLSERVER is the path of a built daemon.
"""

from __future__ import annotations

import json
import statistics
import sys
from contextlib import ExitStack, closing

from harness import Crawler, Daemon, Web

HOSTS, PAGES = 1000, 4
OWN = "SCHEDULER_PRIORITY_QUEUE=scrapy.pqueues.DownloaderAwarePriorityQueue"
ROWS = [("Scrapy's own queue", 0), ("urlserver, 1 process", 1), ("urlserver, 4 processes", 4)]


def crawl(processes: int) -> tuple[float, float, float]:
    """Returns pages a second, and ms of CPU a page of Scrapy and of the daemon.

    processes are those that share a daemon; 0: one alone, with Scrapy's queue.
    """
    with ExitStack() as ends:
        web = ends.enter_context(closing(Web(HOSTS, PAGES)))
        settings = [OWN]
        if processes:
            daemon = ends.enter_context(closing(Daemon(per_sec=1000, concurrent=8)))
            settings = ["SCHEDULER=scrapy_urlserver.Scheduler", f"URLSERVER={daemon.address}"]
        running = [
            ends.enter_context(closing(Crawler(web, *settings))) for _ in range(processes or 1)
        ]
        results = [json.loads(process.communicate()[0]) for process in running]
        served = daemon.cpu() if processes else 0
    pages = sum(result["pages"] for result in results)
    if pages != HOSTS * PAGES:
        sys.exit(f"{pages} pages were crawled, of {HOSTS * PAGES}")
    busy = [result for result in results if result["pages"]]
    seconds = max(r["last"] for r in busy) - min(r["first"] for r in busy)
    return pages / seconds, sum(r["cpu"] for r in results) / pages * 1e3, served / pages * 1e3


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    measured: dict[str, list[tuple[float, float, float]]] = {name: [] for name, _ in ROWS}
    for _ in range(rounds):
        for name, processes in ROWS:
            measured[name].append(crawl(processes))
    print(f"{HOSTS * PAGES:,} pages of {HOSTS:,} hosts, median of {rounds} runs in turns\n")
    print("| queue | pages/s | of Scrapy's | CPU of Scrapy a page | CPU of the daemon a page |")
    print("| --- | ---: | ---: | ---: | ---: |")
    own = statistics.median(rate for rate, _, _ in measured[ROWS[0][0]])
    for name, runs in measured.items():
        rate, cpu, served = (statistics.median(column) for column in zip(*runs, strict=True))
        print(f"| {name} | {rate:,.0f} | {rate / own:.2f} | {cpu:.2f} ms | {served:.2f} ms |")


if __name__ == "__main__":
    main()
