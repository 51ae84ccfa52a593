"""Headless Chromium, by the WebDriver protocol of chromedriver (W3C WebDriver; the DevTools commands through goog/cdp)."""
import base64
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
CHROMIUM = ["chromium", "chromium-browser", "google-chrome"]
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--hide-scrollbars"]


def programs():
    """(chromium, chromedriver), or None when one is not installed."""
    chromium = next((path for path in map(shutil.which, CHROMIUM) if path), None)
    driver = shutil.which("chromedriver")
    return (chromium, driver) if chromium and driver else None


class Element:
    def __init__(self, browser, number):
        self.browser, self.number = browser, number

    def click(self):
        self.browser.call("POST", f"/element/{self.number}/click", {})

    def attribute(self, name):
        return self.browser.script("return arguments[0].getAttribute(arguments[1])", self, name)

    def text(self):
        return self.browser.script("return arguments[0].textContent", self)

    def focus(self):
        self.browser.script("arguments[0].focus()", self)


class Browser:
    """One window. close ends it."""

    def __init__(self):
        chromium, driver = programs()
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = next(found[1] for found in (re.search(r"successfully on port (\d+)", line) for line in self.process.stdout) if found)
        self.base = f"http://127.0.0.1:{port}"
        self.session = None
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        options = {"binary": chromium, "args": [*ARGUMENTS, f"--user-data-dir={self.folder.name}"]}
        capabilities = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        try:
            self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})["sessionId"]
        except BaseException:
            self.close()
            raise

    def call(self, method, path, body=None):
        where = self.base + (f"/session/{self.session}" if self.session else "") + path
        request = urllib.request.Request(where, method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        try:
            with self.opener.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {json.load(error)['value']['message']}") from None

    def close(self):
        try:
            if self.session:
                self.call("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait()
            self.process.stdout.close()
            self.folder.cleanup()

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def script(self, text, *arguments):
        wrapped = [{ELEMENT: a.number} if isinstance(a, Element) else a for a in arguments]
        return self.call("POST", "/execute/sync", {"script": text, "args": wrapped})

    def all(self, selector):
        return [Element(self, found[ELEMENT]) for found in self.call("POST", "/elements", {"using": "css selector", "value": selector})]

    def size(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def open(self, path):
        """Opens a file, and waits until it has drawn itself."""
        self.call("POST", "/url", {"url": pathlib.Path(path).resolve().as_uri()})
        self.settle()

    def settle(self):
        """Until two frames have been painted."""
        self.call("POST", "/execute/async", {"script": "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done())))", "args": []})

    def press(self, *keys):
        """Keys one after the other, as WebDriver names them (U+E014 is the right arrow)."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def messages(self):
        """What the console has said since the last call."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path, whole=False, clip=None):
        """Of the window, of the whole page, or of a part of it: (x, y, width, height)."""
        if whole:
            clip = (0, 0, *self.script("return [innerWidth, document.documentElement.scrollHeight]"))
        parameters = {}
        if clip:
            parameters = {"captureBeyondViewport": True, "clip": {**dict(zip(("x", "y", "width", "height"), clip)), "scale": 1}}
        picture = self.devtools("Page.captureScreenshot", format="png", **parameters)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(picture))
