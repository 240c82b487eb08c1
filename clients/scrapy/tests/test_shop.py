"""Requests of many kinds, through a daemon and back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
from harness import HERE, Daemon, Web


def crawl(web, daemon):
    command = [sys.executable, HERE / "shop.py", str(web.port), daemon.address]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


@pytest.fixture(scope="module")
def result():
    web, daemon = Web(2, 1), Daemon()
    runs = [crawl(web, daemon) for _ in range(2)]
    asked = Counter(path for _, path, _, _ in web.log())
    daemon.close()
    web.close()
    return runs, asked


def test_each_once(result):
    (first, _), asked = result
    assert asked == {"/start": 2, "/post": 3, "/slot": 1}
    values = sorted(one["value"] for one in first["seen"] if one["url"] == "post")
    assert values == ["('a',)", "('b',)", "b'\\xff'"]
    assert first["stats"]["finish_reason"] == "finished"


def test_second_run_has_nothing_to_do(result):
    (_, second), _ = result
    assert [one["url"] for one in second["seen"]] == ["data:,local"]
    assert second["stats"]["finish_reason"] == "finished"


def test_local_requests_stay_in_the_process(result):
    (first, _), _ = result
    assert sum(one["url"] == "data:,local" for one in first["seen"]) == 1
    assert first["stats"]["scheduler/enqueued/memory"] == 1


def test_duplicates_and_what_cannot_be_sent(result):
    (first, _), _ = result
    assert first["stats"]["scheduler/unserializable"] == 2
    assert (
        first["stats"]["dupefilter/filtered"] == 1 + 6
    )  # "a" twice, and all of the second start page


def test_addresses_are_the_daemon_s(result):
    (first, _), _ = result  # only the daemon's name server knows shop.example
    assert {one["address"] for one in first["seen"] if one["url"] != "data:,local"} == {"127.0.0.1"}


def test_the_pace_and_robots_are_the_daemon_s(result):
    (first, _), asked = result
    assert "/robots.txt" not in asked
    assert {one["delay"] for one in first["seen"] if one["url"] != "data:,local"} == {0}


def test_meta_is_the_request_s(result):
    (first, _), _ = result
    assert [one["slot"] for one in first["seen"] if one["url"] == "slot"] == ["mine"]
    for one in first["seen"]:
        assert not {"dont_obey_robotstxt", "autothrottle_dont_adjust_delay"} & set(one["meta"])
