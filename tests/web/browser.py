"""Headless Chromium, controlled over the pipe of the DevTools protocol."""

import atexit
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

if shutil.which("chromium") is None:
    print("skipped: web: no Chromium, and it cannot be installed")
    sys.exit(77)


class Browser:
    """A browser with one page. Records log entries in `logs` and requested URLs in `requests`."""

    def __init__(self, size=(1200, 800)):
        profile = tempfile.mkdtemp(prefix="fovea-browser-")
        # Removed at exit, since child processes of the browser write to it even after close().
        atexit.register(shutil.rmtree, profile, ignore_errors=True)
        to_read, to_write = os.pipe()  # the browser reads from 3 and writes to 4
        from_read, from_write = os.pipe()
        command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
                   "--disable-background-networking", "--disable-component-update",
                   "--disable-ipc-flooding-protection",  # tests change the address often
                   f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}",
                   "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{from_write}', "browser", *command],
            pass_fds=(to_read, from_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.out, self.into = to_write, from_read
        self.buffer, self.number, self.session = b"", 0, None
        self.logs, self.requests, self.dialogs = [], [], []
        end = time.monotonic() + 180
        while not (pages := [t for t in self.call("Target.getTargets")["targetInfos"]
                             if t["type"] == "page"]):
            if time.monotonic() > end:
                raise RuntimeError("the browser did not open a page")
            time.sleep(0.05)
        target = pages[0]
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self.session = attached["sessionId"]
        self.resize(*size)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=120)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 180
        while True:
            reply = self.receive(end)
            if reply.get("id") == message["id"]:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]

    def receive(self, end):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.into], [], [], max(0, end - time.monotonic()))
            part = os.read(self.into, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("no reply from the browser")
            self.buffer += part
        line, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(line)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, event, data):
        if event == "Network.requestWillBeSent":
            self.requests.append(data["request"]["url"])
        elif event == "Log.entryAdded":
            self.logs.append(data["entry"]["text"])
        elif event == "Runtime.consoleAPICalled":
            self.logs.append(str([a.get("value", a.get("description")) for a in data["args"]]))
        elif event == "Runtime.exceptionThrown":
            self.logs.append(data["exceptionDetails"].get("exception", {}).get("description", "?"))
        elif event == "Page.javascriptDialogOpening":
            self.dialogs.append(data["message"])

    def value(self, script):
        """The value of a script in the page."""
        reply = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                          awaitPromise=True)
        if "exceptionDetails" in reply:
            raise RuntimeError(f"{script}: {reply['exceptionDetails']}")
        return reply["result"].get("value")

    def wait(self, script, seconds=180):
        end = time.monotonic() + seconds
        while not self.value(script):
            if time.monotonic() > end:
                raise RuntimeError(f"timeout, still false: {script}")
            time.sleep(0.05)

    def open(self, url):
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait("document.body !== null && document.body.dataset.ready !== undefined")

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def dark(self, on):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
