# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by its debugging protocol through a pipe; without further packages."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest


def require_chromium() -> str:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium (Debian: chromium)")
    return program


class Browser:
    """One page. Close it."""

    def __init__(self, width: int = 1100, height: int = 900) -> None:
        self._profile = Path(tempfile.mkdtemp(prefix="warpcache-test-chromium-"))
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        # The program reads descriptor 3 and writes descriptor 4.
        shell = f'exec "$@" 3<&{commands} 4>&{answers}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, "bash", require_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={self._profile}",
             f"--window-size={width},{height}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(commands, answers),
            env={**os.environ, "TMPDIR": str(self._profile)},
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self._received = b""
        self._number = 0
        self._session = None
        self.events: list[dict[str, Any]] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            data = os.read(self._answers, 1 << 20)
            if not data:
                raise ConnectionError("chromium has ended")
            self._received += data
        text, self._received = self._received.split(b"\0", 1)
        return json.loads(text)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)

    def value(self, expression: str) -> Any:
        """Of an expression in JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def text(self, selector: str) -> str:
        return self.value(f"(document.querySelector({json.dumps(selector)}) || {{}}).textContent || ''")

    def press(self, key: str, text: str = "") -> None:
        code = {"Tab": 9, "Enter": 13, " ": 32}[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text)

    def prefer(self, scheme: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def requested(self) -> list[str]:
        """The addresses that the page has asked for."""
        return [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)
        # Its helpers may write to the folder until they notice.
        while self._profile.exists():
            shutil.rmtree(self._profile, ignore_errors=True)
            time.sleep(0.02)
