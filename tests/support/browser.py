"""A headless Chromium, spoken to over its DevTools pipe; no package is needed for that."""

from __future__ import annotations

import base64
import json
import os
import queue
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HOW_TO_GET = "install Chromium (Debian: apt-get install chromium), or put its path into CHROMIUM"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    *("--disable-dev-shm-usage", "--remote-debugging-pipe", "--disable-default-apps", "--mute-audio"),
)


def find_chromium() -> str:
    """The browser's path; installed when it is absent and this process may install it, else the test is skipped.

    With ``CI`` set a missing browser is a failure: what is checked there must be checked.
    """
    found = _found()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]):
            env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run(command, env=env, capture_output=True, check=False)
        found = _found()
    if found is None:
        message = f"THE REPORT WAS NOT TESTED in a browser: there is none; {HOW_TO_GET}"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    return found


def _found() -> str | None:
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class BrowserError(AssertionError):
    """The browser answered with an error, or not at all."""


class Browser:
    """One browser process with a profile of its own; a context manager."""

    def __init__(self, profile: Path, *flags: str) -> None:
        to_read, to_write = os.pipe(), os.pipe()

        def hand_over() -> None:
            # The browser reads commands from descriptor 3 and writes to 4; both may be taken already.
            reading, writing = os.dup(to_read[0]), os.dup(to_write[1])
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self._process = subprocess.Popen(
            [find_chromium(), *FLAGS, *flags, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=hand_over,  # noqa: PLW1509 - no other thread runs yet, and only dup2 makes these two numbers
            start_new_session=True,
        )
        os.close(to_read[0])
        os.close(to_write[1])
        self._write, self._read = os.fdopen(to_read[1], "wb", buffering=0), os.fdopen(to_write[0], "rb")
        self._number = 0
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        held = b""
        while block := os.read(self._read.fileno(), 1 << 20):
            *messages, held = (held + block).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers[message["id"]].put(message)
                else:
                    self.events.put(message)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Ask the browser for something and wait for its answer."""
        self._number += 1
        self._answers[self._number] = queue.Queue()
        message = {"id": self._number, "method": method, "params": parameters}
        self._write.write(json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        try:
            answer = self._answers[self._number].get(timeout=60)
        except queue.Empty:
            raise BrowserError(f"{method}: no answer from the browser") from None
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def page(self, width: int = 1280, height: int = 900, dark: bool = False) -> Page:
        """A new page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, target, session, (width, height), dark)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._write.close()  # the browser ends when its pipe does
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._read.close()


class Page:
    """One page of a browser, with what it logged and what it asked for."""

    def __init__(self, browser: Browser, target: str, session: str, size: tuple[int, int], dark: bool) -> None:
        self._browser, self._target, self._session = browser, target, session
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(*size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something of this page."""
        return self._browser.call(method, self._session, **parameters)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window's inside."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def open(self, address: str, ready: str = "true", seconds: float = 60.0) -> None:
        """Go to an address and wait until an expression of it is true."""
        self.call("Page.navigate", url=address)
        self.wait(f"document.readyState === 'complete' && ({ready})", seconds)

    def wait(self, condition: str, seconds: float = 20.0) -> None:
        """Wait until an expression is true; fails with what the page has logged."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.value(f"!!({condition})"):
                return
            time.sleep(0.02)
        self.settle()
        raise BrowserError(f"never came true: {condition}\nlogged: {self.errors}")

    def value(self, expression: str) -> Any:
        """What an expression comes to."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def key(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def write(self, text: str) -> None:
        """Type a text into what has the focus."""
        self.call("Input.insertText", text=text)

    def screenshot(self, path: Path, whole: bool = False) -> Path:
        """Save what the window shows, or the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))
        return path

    def close(self) -> None:
        """Close the page."""
        self._browser.call("Target.closeTarget", targetId=self._target)

    def settle(self) -> None:
        """Sort the events that have come in so far into errors, requests and dialogs."""
        while not self._browser.events.empty():
            event = self._browser.events.get()
            if event.get("sessionId") != self._session:
                continue
            found = event["params"]
            match event["method"]:
                case "Runtime.exceptionThrown":
                    self.errors.append(str(found["exceptionDetails"]))
                case "Runtime.consoleAPICalled" if found["type"] in ("error", "warning", "assert"):
                    self.errors.append(str(found["args"]))
                case "Log.entryAdded" if found["entry"]["level"] in ("error", "warning"):
                    self.errors.append(f"{found['entry']['text']} {found['entry'].get('url', '')}")
                case "Network.requestWillBeSent":
                    self.requests.append(found["request"]["url"])
                case "Page.javascriptDialogOpening":
                    self.dialogs.append(found["message"])
                    self.call("Page.handleJavaScriptDialog", accept=False)
