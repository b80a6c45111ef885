"""A collector of spans: OTLP over HTTP, decoded by the reference's own messages."""

import ssl

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from harness import eventually
from served import Quiet, Served


class Span:
    """One span with plain attributes."""

    def __init__(self, resource, span):
        self.resource = {item.key: item.value.string_value for item in resource.attributes}
        self.name, self.kind, self.error = span.name, span.kind, span.status.code == 2
        self.trace, self.id, self.parent = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
        self.start, self.end, self.sampled = span.start_time_unix_nano, span.end_time_unix_nano, span.flags & 1 == 1
        self.about = {item.key: item.value.int_value or item.value.string_value for item in span.attributes}
        self.links = [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]
        self.links_left_out = span.dropped_links_count

    def __repr__(self):
        return f"{self.name} {self.trace[:8]}/{self.parent[:8]}/{self.id[:8]} {self.about}{' error' if self.error else ''}"


class Collector(Served):
    """Keeps what it is sent; answers `statuses` one after the other, then 200."""

    def __init__(self, certificate=None):
        outer = self
        self.bodies, self.requests, self.statuses = [], [], []

        class Handler(Quiet):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = outer.statuses.pop(0) if outer.statuses else 200
                if status == 200:
                    outer.bodies.append(body)
                outer.requests.append((self.path, dict(self.headers.items()), status))
                self.respond(status, b"", "application/x-protobuf")

        super().__init__(Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.origin = f"https://localhost:{self.server.server_port}"

    def spans(self, trace=None):
        found = []
        for body in list(self.bodies):
            request = ExportTraceServiceRequest.FromString(body)
            for group in request.resource_spans:
                found += [Span(group.resource, span) for scope in group.scope_spans for span in scope.spans]
        return [span for span in found if trace in (None, span.trace)]

    def told(self, count, trace=None):
        """The spans, once there are so many; no more come later, since a trace's spans are sent together."""
        eventually(lambda: len(self.spans(trace)) >= count, what=f"{count} spans of {trace}, not {self.spans()}")
        found = self.spans(trace)
        assert len(found) == count, found
        return found
