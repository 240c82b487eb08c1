"""Crawls a web over one connection: puts the first URLs, fetches what it is sent, puts the links, and ends when nothing is left.

Usage: spider.py HOST:PORT URL... Needs nothing but Python. It fetches plain HTTP, one page at a time.
"""
import html.parser
import http.client
import json
import socket
import sys
import time
import urllib.parse


class Links(html.parser.HTMLParser):
    def __init__(self, base):
        super().__init__()
        self.base, self.found = base, []

    def handle_starttag(self, tag, attrs):
        if tag == "a" and dict(attrs).get("href"):
            self.found.append(urllib.parse.urljoin(self.base, dict(attrs)["href"]))


class Daemon:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.lines, self.fetches = self.socket.makefile(encoding="utf-8"), []

    def say(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def answer(self):  # lines to fetch, which begin with a digit, may come between
        while not (line := self.lines.readline().split())[0].isalpha():
            self.fetches.append(line)
        return line

    def put(self, url, **members):
        self.say("PUT 1 " + json.dumps({"url": url, **members}))
        return self.answer()[2]  # new, known, invalid, out_of_scope or fail

    def counts(self):
        self.say("COUNT 1")
        return [int(n) for n in self.answer()[2:]]  # due now, in flight, due later, ended


def get(ip, url):
    u = urllib.parse.urlsplit(url)
    try:
        web = http.client.HTTPConnection(ip, u.port or 80, timeout=30)
        web.request("GET", u._replace(scheme="", netloc="").geturl(), headers={"Host": u.netloc, "User-Agent": "urlserver"})
        answer = web.getresponse()
        return answer.status, answer.getheader("Location"), answer.read().decode("latin-1")
    except (OSError, http.client.HTTPException):
        return 0, None, ""


daemon = Daemon(sys.argv[1])
daemon.say("ROOM 0")  # nothing before the first URLs are put
for url in sys.argv[2:]:
    print("put", url, daemon.put(url))
daemon.say("ROOM 1")
while sum(daemon.counts()[:2]) > 0:
    if not daemon.fetches:  # nothing may be fetched yet, or the last DONE is not counted yet
        time.sleep(0.1)
        continue
    trans, doc, ip, url = daemon.fetches.pop(0)
    status, location, page = get(ip, url)
    links = Links(url)
    links.feed(page)
    for link in links.found:  # before DONE: what is done is never sent again
        daemon.put(link, via=doc)
    target = " location=" + urllib.parse.urljoin(url, location) if location else ""
    daemon.say(f"{trans} DONE {status} bytes={len(page)}{target}")
    print("got", url, status)
print("ended:", daemon.counts()[3])
