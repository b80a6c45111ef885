"""Promise: a second `cardea run` on an address in use ends with a clear word, and the first goes on unharmed."""

import pytest

from harness import together
from scripted import Scripted, answer, plain


def by(name):
    def script(peer):
        for _ in peer.requests():
            peer.send(answer(name))

    return script


@pytest.mark.parametrize("shared", ["listen", "admin"])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_second_one_says_why_it_cannot(gateways, shared, threads):
    first, second = gateways(), gateways()
    setattr(second, shared, getattr(first, shared))
    with Scripted(by(b"first")) as one, Scripted(by(b"second")) as two:
        plain(first, one, threads=threads).start()
        plain(second, two, threads=threads).start(ready=False)
        second.may_exit = True
        assert second.process.wait(10) == 75
        assert getattr(first, shared) in second.text() and "another process listens there" in second.text()
        assert {found.body for found in together(20, lambda _: first.get("/"))} == {b"first"}
        assert first.ask("/readyz").status == 200


def test_the_same_file_twice(gateway):
    with Scripted(by(b"first")) as upstream:
        plain(gateway, upstream).start()
        status, _, errors = gateway.command("run")
        assert status == 75, errors
        assert errors.count("\n") < 20 and "another process" in errors, errors
        assert {found.body for found in together(20, lambda _: gateway.get("/"))} == {b"first"}
        assert gateway.command("health")[0] == 0


def test_the_address_is_free_again_after_a_stop(gateway):
    """Also while connections of the first one linger in the kernel."""
    with Scripted(by(b"first")) as upstream:
        plain(gateway, upstream, threads=2).start()
        for end in (gateway.stop, gateway.kill, gateway.stop):
            together(10, lambda _: gateway.get("/"))
            end()
            gateway.start()
        assert gateway.get("/").body == b"first"
