"""A Scrapy scheduler whose queue is the URL server: SCHEDULER = "scrapy_urlserver.Scheduler"."""

from .scheduler import Scheduler

__all__ = ["Scheduler"]
__version__ = "0.1.0"
