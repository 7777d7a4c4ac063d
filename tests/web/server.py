"""The service under test, the page that it serves, and functions that run tests against them."""

import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

from browser import Browser
from expected import FOVEA, Failed, equal


class Server:
    """A context manager that runs a service for the page. Fails if its exit code is not 0."""

    def __init__(self, page, *arguments):
        self.page, self.before = page, page.url
        self.log = tempfile.TemporaryFile("w+", dir=page.folder)
        self.process = subprocess.Popen([FOVEA, "serve", "--port", "0", "--log-format", "plain",
                                         *arguments], stderr=self.log)

    def __enter__(self):
        for _ in range(1200):
            self.log.seek(0)
            found = re.search(r"listening on (http:\S+)", self.log.read())
            if found:
                self.page.url = found.group(1).rstrip("/")
                return self
            time.sleep(0.1)
        self.process.kill()
        raise Failed("the server did not start to listen")

    def __exit__(self, kind, error, trace):
        self.page.url = self.before
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        if kind is None:
            equal(status, 0, "exit code of the server")


class Page:
    def __init__(self, folder):
        self.browser = Browser()
        self.folder, self.url = folder, None

    def open(self, **state):
        self.browser.open(f"{self.url}/#{urllib.parse.urlencode(state)}")

    def numbers(self, selector, name):
        return self.browser.value(
            f"[...document.querySelectorAll({json.dumps(selector)})].map("
            f"(node) => Number(node.dataset[{json.dumps(name)}]))")

    def text(self, selector):
        return self.browser.value(f"document.querySelector({json.dumps(selector)}).textContent")

    def click(self, selector):
        self.browser.value(f"document.querySelector({json.dumps(selector)}).click()")


def nothing_else_happened(page):
    equal(page.browser.logs, [], "log entries of the browser")
    equal(page.browser.dialogs, [], "dialogs")
    foreign = [url for url in page.browser.requests
               if not url.startswith((page.url + "/", "about:", "data:", "blob:" + page.url))]
    equal(foreign, [], "requests to other servers")


def chosen(tests):
    """The tests named on the command line; all tests if none is named."""
    return [test for test in tests if not sys.argv[1:] or test.__name__ in sys.argv[1:]]


def run(page, models, tests):
    """Runs the tests against a service with these models; returns how many failed."""
    failed = 0
    if not tests:
        return failed
    with Server(page, *models):
        for test in tests:
            try:
                test(page)
                print(f"ok      {test.__name__}", flush=True)
            except Exception as error:  # a broken page can cause any exception
                print(f"FAILED  {test.__name__}: {error!r}", flush=True)
                failed += 1
        page.browser.requests.clear()
    return failed
