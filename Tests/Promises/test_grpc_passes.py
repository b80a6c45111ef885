"""Promise: gRPC passes: its client finds the gateway by prior knowledge, its server gets a credential that the client does not have, and
every kind of call ends with its status."""

import concurrent.futures
import contextlib
import time

import grpc
import pytest

from harness import eventually
from origins import SECRET, forward


class Echo(grpc.GenericRpcHandler):
    """Messages are octets: no schema is needed to see them pass."""

    def __init__(self):
        self.seen, self.waiting, self.cancelled = [], [], []

    def service(self, call):
        self.seen.append(dict(call.invocation_metadata))
        match call.method:
            case "/echo/Unary":
                return grpc.unary_unary_rpc_method_handler(self.unary)
            case "/echo/Up":
                return grpc.stream_unary_rpc_method_handler(lambda parts, _: b"%d" % sum(map(len, parts)))
            case "/echo/Down":
                return grpc.unary_stream_rpc_method_handler(self.down)
            case "/echo/Both":
                return grpc.stream_stream_rpc_method_handler(lambda parts, _: (part.upper() for part in parts))
            case "/echo/Refuse":
                return grpc.unary_unary_rpc_method_handler(
                    lambda _, context: context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not %41 now: é")
                )
            case "/echo/Never":
                return grpc.unary_unary_rpc_method_handler(self.never)

    def unary(self, message, context):
        context.send_initial_metadata([("x-first", "1")])
        context.set_trailing_metadata([("x-last", "2"), ("x-octets-bin", b"\0\1\377")])
        return message

    def down(self, message, context):
        for index in range(int(message)):
            yield b"%d" % index

    def never(self, _, context):
        context.add_callback(lambda: self.cancelled.append(True))
        self.waiting.append(True)
        while context.is_active():
            time.sleep(0.01)


@pytest.fixture
def echo(gateway):
    """(channel through the gateway, the server's handler)"""
    handler = Echo()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), [handler])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    forward(gateway, f"127.0.0.1:{port}", 2).start()
    limits = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]
    with contextlib.closing(grpc.insecure_channel(gateway.listen, limits)) as channel:
        yield channel, handler
    server.stop(None).wait(10)


def test_unary(echo):
    channel, handler = echo
    for message in (b"", b"hello", b"x" * 3_000_000):
        answer, call = channel.unary_unary("/echo/Unary").with_call(message, timeout=20)
        assert answer == message
        assert dict(call.initial_metadata())["x-first"] == "1"
        assert dict(call.trailing_metadata())["x-last"] == "2"
        assert dict(call.trailing_metadata())["x-octets-bin"] == b"\0\1\377"
    assert [seen["authorization"] for seen in handler.seen] == [f"Bearer {SECRET}"] * 3


def test_streams_either_way(echo):
    channel, _ = echo
    assert channel.stream_unary("/echo/Up")((b"x" * 1000 for _ in range(500)), timeout=20) == b"500000"
    assert list(channel.unary_stream("/echo/Down")(b"500", timeout=20)) == [b"%d" % index for index in range(500)]


def test_a_conversation(echo):
    """Each message waits for the answer to the one before it: nothing may be held back on the way."""
    channel, _ = echo
    answers = []

    def ask():
        for index in range(50):
            eventually(lambda: len(answers) == index)
            yield b"message %d" % index

    for part in channel.stream_stream("/echo/Both")(ask(), timeout=20):
        answers.append(part)
    assert answers == [b"MESSAGE %d" % index for index in range(50)]


def test_many_calls_at_once(echo):
    channel, handler = echo
    calls = [channel.unary_unary("/echo/Unary").future(b"%d" % index, timeout=20) for index in range(200)]
    assert [call.result() for call in calls] == [b"%d" % index for index in range(200)]


def test_an_error_is_told_by_trailers_alone(echo):
    channel, _ = echo
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/echo/Refuse")(b"", timeout=20)
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.FAILED_PRECONDITION, "not %41 now: é")
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/echo/Unknown")(b"", timeout=20)
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_deadline_ends_the_call_at_the_server_too(echo):
    channel, handler = echo
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/echo/Never")(b"", timeout=0.5)
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    eventually(lambda: handler.cancelled, what="the server learning of it")
    assert "grpc-timeout" not in handler.seen[0], "grpcio keeps it to itself"
    assert channel.unary_unary("/echo/Unary")(b"after", timeout=20) == b"after"


def test_a_cancelled_call_ends_at_the_server_too(echo):
    channel, handler = echo
    call = channel.unary_unary("/echo/Never").future(b"", timeout=20)
    # Not only seen: whoever is cancelled before it asked to be told is not told.
    eventually(lambda: handler.waiting, what="the call at the server")
    call.cancel()
    eventually(lambda: handler.cancelled, what="the server learning of it")
