"""Runs uvicorn with the parser that is named: it tells in a field of its answer what it understood."""

import base64
import json
import sys

import uvicorn


async def report(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b""
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return
        body += event.get("body", b"")
        if not event.get("more_body"):
            break
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    told = json.dumps([scope["method"], target.decode("latin-1"), fields, body.decode("latin-1")]).encode()
    lines = [(b"x-report", base64.b64encode(told)), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 200, "headers": lines})
    await send({"type": "http.response.body", "body": b""})


uvicorn.run(
    report,
    host="127.0.0.1",
    port=int(sys.argv[2]),
    http=sys.argv[1],
    ws="none",
    lifespan="off",
    log_level="critical",
    access_log=False,
    proxy_headers=False,
    server_header=False,
    date_header=False,
    timeout_keep_alive=60,
    h11_max_incomplete_event_size=1 << 20,
)
