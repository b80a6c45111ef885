"""Stands between the gateways and the lab's issuers, and writes down which gateway took which step; the lab itself counts, and tells
nobody apart.

    recorder.py FOLDER      serves until its input ends"""

import asyncio
import sys
import time

from history import Writer, print_of
from places import HUB, LAB, RECORDER
from server import Answer, end_of_input, serve

# What a step is by the last word of its path: those of a WebGate's token service, and of a MobileFirst server.
STEPS = {"register": "register", "authenticate": "login", "access": "access", "token": "client_credentials"}
HOPS = {"connection", "content-length", "transfer-encoding", "host", "keep-alive"}


async def ask_lab(request):
    reader, writer = await asyncio.open_connection(HUB, LAB["issuer"], limit=1 << 18)
    try:
        lines = [f"{request.method} {request.target} HTTP/1.1", f"Host: {request.field('host')}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in request.fields if name not in HOPS]
        lines.append(f"Content-Length: {len(request.body)}")
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + request.body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = [(name, value.strip()) for name, _, value in (line.partition(":") for line in head[1:] if line)]
        length = next((int(value) for name, value in fields if name.lower() == "content-length"), None)
        body = await (reader.read() if length is None else reader.readexactly(length))
        return Answer(int(head[0].split()[1]), body, [pair for pair in fields if pair[0].lower() not in HOPS])
    finally:
        writer.close()


class Recorder:
    def __init__(self, folder):
        self.history = Writer(folder, "recorded")

    async def respond(self, request):
        began = time.monotonic()
        path = request.target.split("?")[0]
        how = STEPS.get(path.rsplit("/", 1)[-1], "other")
        system = "mfp" if path.startswith("/mfp/") else "hr"
        answer = await ask_lab(request)

        def note(whole):
            facts = {
                "c": system,
                "a": "",
                "u": "",
                "how": how,
                "path": path,
                "st": answer.status,
                "s": print_of(request.body.decode("latin-1")),
            }
            self.history.note("call", began, e=time.monotonic(), g=request.gateway, whole=whole, **facts)
            self.history.flush()

        return answer, note


if __name__ == "__main__":
    recorder = Recorder(sys.argv[1])
    asyncio.run(serve([(HUB, RECORDER, recorder.respond)], end_of_input))
    recorder.history.close()
