"""Servers of the standard library, for what no other program does."""

import http.server
import threading


class Served:
    """A handler on a port of its own, until it is closed."""

    def __init__(self, handler, place=("127.0.0.1", 0)):
        self.server = http.server.ThreadingHTTPServer(place, handler)
        self.address = f"{place[0]}:{self.server.server_port}"
        self.origin = f"http://{self.address}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def respond(self, status, body=b"", kind=None):
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Echo(Served):
    """Keeps what reached it."""

    def __init__(self):
        outer = self
        self.seen = []

        class Handler(Quiet):
            def do_GET(self):
                outer.seen.append((self.path, self.headers.items()))
                self.respond(200, b"ok")

        super().__init__(Handler)
