"""A web server with one file, which answers as it is told to: with ranges, without, slowly, or with lies."""

import re
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Web(ThreadingHTTPServer):
    """Use `serving`. `behaviour` is how it answers; `sent` counts the bytes of all bodies."""

    daemon_threads = True

    def __init__(self, content, behaviour):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.behaviour = content, behaviour
        self.sent, self.asked = 0, []

    def address(self, path="/model.gguf"):
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def handle_error(self, request, client_address):
        """A client that leaves is no error."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server, content = self.server, self.server.content
        server.asked.append((self.path, self.headers.get("Authorization")))
        behaviour = server.behaviour
        if isinstance(behaviour, int):
            self.answer(behaviour, b"")
        elif behaviour == "redirect" and not self.path.startswith("/elsewhere"):
            self.answer(302, b"", {"Location": "/elsewhere" + self.path})
        elif behaviour == "loop":
            self.answer(302, b"", {"Location": self.path})
        elif behaviour in ("whole", "cut", "no length", "compressed"):
            self.whole(content)
        else:
            self.part(content)

    def part(self, content):
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        last = min(last, len(content) - 1)
        shown, total = first, len(content)
        if self.server.behaviour == "other part":
            shown += 1
        if self.server.behaviour == "larger":
            total += len(self.server.asked)
        self.answer(206, content[first : last + 1], {"Content-Range": f"bytes {shown}-{last}/{total}"})

    def whole(self, content):
        behaviour = self.server.behaviour
        headers = {"Content-Encoding": "gzip"} if behaviour == "compressed" else {}
        self.send_response(200)
        if behaviour != "no length":
            headers["Content-Length"] = str(len(content))
        for name, value in (headers | {"Connection": "close"}).items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        self.body(content[: len(content) // 100] if behaviour == "cut" else content)

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.body(body)

    def body(self, body):
        for start in range(0, len(body), 1 << 16):
            if self.server.behaviour == "trickle":
                time.sleep(0.3)
            self.wfile.write(body[start : start + (1 << 16)])
            self.server.sent += len(body[start : start + (1 << 16)])


@contextmanager
def serving(content, behaviour="ranges"):
    """A running server."""
    server = Web(content, behaviour)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
