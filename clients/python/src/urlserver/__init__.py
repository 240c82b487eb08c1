"""Client of the URL server, a polite URL frontier for web crawlers.

Client is for asyncio, BlockingClient for everything else. Both are a spider of the daemon: they
get jobs, put URLs, and count.
"""

from .blocking import BlockingClient, BlockingJob
from .client import Client, ClientClosed, Failed, Members
from .job import Job, JobEnded
from .wire import Counts

__all__ = [
    "BlockingClient",
    "BlockingJob",
    "Client",
    "ClientClosed",
    "Counts",
    "Failed",
    "Job",
    "JobEnded",
    "Members",
]
