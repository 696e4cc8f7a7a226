"""A headless Chromium that a test drives over a pipe, with nothing but the standard library."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE = 60
"""Seconds that an answer may take."""


class Browser:
    """One Chromium process; ``page`` opens a tab."""

    def __init__(self, folder: Path) -> None:
        if CHROMIUM is None:
            pytest.skip("there is no Chromium to look at the page with")
        theirs, self._out = os.pipe()
        self._in, answers = os.pipe()
        flags = (
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--hide-scrollbars", f"--user-data-dir={folder}", "--remote-debugging-pipe"),
        )
        command = f'exec "$@" 3<&{theirs} 4>&{answers}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", CHROMIUM, *flags, "about:blank"],
            pass_fds=(theirs, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(answers)
        self._number, self._rest, self.events = 0, b"", []
        try:
            self.send("Browser.getVersion")
        except (AssertionError, OSError):
            pytest.skip(f"{CHROMIUM} does not start")

    def send(self, method: str, session: str | None = None, **values):
        """Send a command and return its result; what happens meanwhile goes to ``events``."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": values}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _read(self, deadline: float) -> dict:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0, deadline - time.monotonic()))
            part = os.read(self._in, 1 << 20) if ready else b""
            assert part, "Chromium does not answer"
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message

    def page(self, path: Path, width: int = 1200, height: int = 900, dark: bool = False) -> "Page":
        """Open a file in a tab of a given size."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session, path, (width, height), dark)

    def close(self) -> None:
        """End the process."""
        os.close(self._out)
        os.close(self._in)
        self._process.terminate()
        self._process.wait(timeout=20)


class Page:
    """A tab that shows a file."""

    def __init__(self, browser: Browser, session: str, path: Path, size, dark: bool) -> None:
        self.browser, self.session = browser, session
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        width, height = size
        self.send(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[theme])
        self.url = path.resolve().as_uri()
        self.send("Page.navigate", url=self.url)
        self.wait_for("document.readyState === 'complete'")
        self.to_valid_params()

    def send(self, method: str, **values):
        """Send a command to this tab."""
        return self.browser.send(method, self.session, **values)

    def run(self, script: str):
        """Return what an expression is worth in the page."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, script: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.run(script):
            assert time.monotonic() < deadline, script
            time.sleep(0.02)

    def to_valid_params(self) -> None:
        """Let the page draw what it has to draw."""
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")

    def box(self, selector: str) -> dict:
        """Scroll to an element and return where it is."""
        return self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'});"
            "const b = e.getBoundingClientRect();"
            "return {x: b.x, y: b.y, width: b.width, height: b.height}; })()"
        )

    def mouse(self, kind: str, x: float, y: float, **values) -> None:
        """Send one event of the mouse."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **values)

    def click(self, selector: str, times: int = 1) -> None:
        """Click into the middle of an element."""
        box = self.box(selector)
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.mouse("mouseMoved", x, y)
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.mouse(kind, x, y, button="left", clickCount=count)
        self.to_valid_params()

    def drag(self, selector: str, start: float, stop: float) -> None:
        """Drag across an element, from one share of its width to another."""
        box = self.box(selector)
        y = box["y"] + box["height"] / 2
        xs = [box["x"] + box["width"] * (start + (stop - start) * i / 8) for i in range(9)]
        self.mouse("mouseMoved", xs[0], y)
        self.mouse("mousePressed", xs[0], y, button="left", clickCount=1)
        for x in xs[1:]:
            self.mouse("mouseMoved", x, y, button="left", buttons=1)
        self.mouse("mouseReleased", xs[-1], y, button="left", clickCount=1)
        self.to_valid_params()

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.to_valid_params()

    def screenshot(self, path: Path, whole: bool = True) -> None:
        """Write what the page looks like."""
        answer = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def complaints(self) -> list[str]:
        """Return errors of the page: exceptions, messages of the console, broken policies."""
        bad = []
        for event in self._events():
            values = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                bad.append(json.dumps(values["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled" and values["type"] != "log":
                bad.append(json.dumps(values["args"]))
            elif event["method"] == "Log.entryAdded":
                bad.append(values["entry"]["text"])
        return bad

    def requests(self) -> list[str]:
        """Return the addresses that the page has asked for, but its own and pictures inside it."""
        asked = [
            event["params"]["request"]["url"]
            for event in self._events()
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in asked if url != self.url and not url.startswith("data:")]

    def _events(self) -> list[dict]:
        self.run("0")
        return [event for event in self.browser.events if event.get("sessionId") == self.session]
