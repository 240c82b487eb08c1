"""Several processes at one crawl, against a daemon and a made web on loopback."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict

import pytest
from harness import Crawler, Daemon, Web

ROOM = 20  # CONCURRENT_REQUESTS of each process


@pytest.fixture
def start():
    """Returns what starts a daemon, a web or a crawler, which end with the test."""
    started = []

    def begin(one):
        started.append(one)
        return one

    yield begin
    for one in reversed(started):
        one.close()


def settings(daemon: Daemon, *more: str) -> list[str]:
    return ["SCHEDULER=scrapy_urlserver.Scheduler", f"URLSERVER={daemon.address}", *more]


def shortest(log, requests=1):
    """Returns the shortest time from a request to an address until as many later ones have come."""
    times = defaultdict(list)
    for address, _, _, at in log:
        times[address].append(at)
    return min(
        later - at for ats in times.values() for at, later in zip(ats, ats[requests:], strict=False)
    )


@pytest.mark.parametrize("processes", [1, 4])
def test_broad(start, processes):
    """A thousand hosts: each page comes once, and the hosts see one pace."""
    web, per_sec = start(Web(1000, 2)), 2
    daemon = start(Daemon(per_sec=per_sec, concurrent=1))
    running = [start(Crawler(web, *settings(daemon))) for _ in range(processes)]
    results = [json.loads(process.communicate()[0]) for process in running]
    log = web.log()
    assert Counter((address, path) for address, path, _, _ in log).most_common(1)[0][1] == 1
    assert len(log) == web.hosts * web.pages == sum(result["pages"] for result in results)
    assert sum(result["pages"] > 0 for result in results) == processes
    print("shortest gap", shortest(log), "of", 1 / per_sec)
    assert shortest(log) > 0.5 / per_sec


def test_killed(start, tmp_path):
    """Of three processes, one is killed and another one started, ten times.

    Each page comes, and comes again only if it was open at a process that was killed. The hosts
    see the pace of one crawler, over each twenty requests: the daemon paces its lines to all
    processes. A process that is busy sends a request late, so a single gap may be shorter by that.
    """
    web, kills, per_sec = start(Web(40, 40)), 10, 3
    daemon = start(Daemon(per_sec=per_sec, concurrent=1, kind="disk"))
    record, killed, count = tmp_path / "record", [], 0

    def begin():
        nonlocal count
        count += 1
        name = f"process-{count}"
        more = f"USER_AGENT={name}", f"CONCURRENT_REQUESTS={ROOM}", f"RECORD={record}"
        return name, start(Crawler(web, *settings(daemon, *more)))

    running = [begin() for _ in range(3)]
    while len(killed) < kills:
        name, process = running.pop(0)
        while json.loads(web.get("/counts")).get(name, 0) < 2 * ROOM:
            assert process.poll() is None, "the crawl has ended before all kills"
            time.sleep(0.02)
        process.kill()
        process.communicate()
        killed.append(name)
        running.append(begin())
    for _, process in running:
        assert process.communicate()[1] is None and process.returncode == 0

    asked = defaultdict(list)
    for address, path, name, _ in web.log():
        asked[f"http://{address}:{web.port}{path}"].append(name)
    assert len(asked) == web.hosts * web.pages == len(set(record.read_text().split()))
    again = Counter(name for names in asked.values() for name in names[:-1])
    print("asked again:", dict(again))
    assert set(again) <= set(killed)
    assert max(again.values(), default=0) <= ROOM
    askers = defaultdict(set)
    for address, _, name, _ in web.log():
        askers[address].add(name)
    assert len(askers) == web.hosts and min(map(len, askers.values())) > 1
    print("shortest gap", shortest(web.log()), "of", 1 / per_sec)
    print("twenty requests in", shortest(web.log(), 20), "of", 20 / per_sec)
    assert shortest(web.log(), 20) > 0.9 * 20 / per_sec
