"""Puts URLs into a URL Frontier, gets those that may be fetched now, and reports them as done.

Usage: frontier.py [HOST:PORT]. Needs: pip install grpcio grpcio-tools
"""
import pathlib
import sys

import grpc

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
pb, rpc = grpc.protos_and_services("api/urlfrontier/urlfrontier.proto")  # compiled now, nothing is generated

URLS = ["http://a.example/1", "http://a.example/2", "http://b.example/1", "http://a.example/1"]


def discovered(url):
    return pb.URLItem(discovered=pb.DiscoveredURLItem(info=pb.URLInfo(url=url)))


def done(info):  # 0: never to be fetched again; else the second since 1970 from which on it is
    return pb.URLItem(known=pb.KnownURLItem(info=info, refetchable_from_date=0))


def put(frontier, items):
    for ack in frontier.PutURLs(items):
        print("put", ack.ID, pb.AckMessage.Status.Name(ack.status))


with grpc.insecure_channel(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7071") as channel:
    frontier = rpc.URLFrontierStub(channel)
    put(frontier, map(discovered, URLS))
    infos = list(frontier.GetURLs(pb.GetParams(max_urls_per_queue=1, delay_requestable=60)))
    for info in infos:
        print("get", info.url, "of", info.key)  # here it would be fetched
    put(frontier, map(done, infos))
