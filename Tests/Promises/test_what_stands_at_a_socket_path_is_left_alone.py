"""Promise: a unix listener takes the place of a socket that a killed process left, and of nothing else."""

import contextlib
import os
import socket
import stat

from harness import together
from scripted import Local, Scripted, echo, get, plain


def at(gateway, upstream, path, **changes):
    return plain(gateway, upstream, {"listen": f"unix:{path}"}, **changes)


def refused(gateway, status=78):
    gateway.start(ready=False)
    gateway.may_exit = True
    assert gateway.process.wait(10) == status, gateway.text()
    return gateway.text()


def test_callers_of_both_loops_are_served_and_the_stop_is_clean(gateway):
    path = gateway.folder / "in.sock"
    with Scripted(echo) as upstream:
        at(gateway, upstream, path, threads=2).start()
        assert stat.S_ISSOCK(os.stat(path).st_mode)

        def one(number):
            with Local(path) as raw:
                return [raw.send(get(gateway, f"/{number}/{turn}")).answer().body.decode() for turn in range(5)]

        assert together(32, one) == [[f"/{number}/{turn}" for turn in range(5)] for number in range(32)]
        with contextlib.ExitStack() as stack:
            idle = [stack.enter_context(Local(path)).send(get(gateway, "/idle")) for _ in range(8)]
            assert [raw.answer().status for raw in idle] == [200] * 8
            assert gateway.stop(within=8) == 0, gateway.text()
            assert all(raw.is_closed() for raw in idle)


def test_a_socket_of_a_killed_process_is_replaced(gateway):
    path = gateway.folder / "in.sock"
    with Scripted(echo) as upstream:
        at(gateway, upstream, path, threads=2).start()
        gateway.kill()
        assert path.exists()
        gateway.start()
        with Local(path) as raw:
            assert raw.send(get(gateway, "/a")).answer().body == b"/a"


def test_a_file_stays_and_the_error_says_so(gateway):
    path = gateway.folder / "precious"
    path.write_text("precious")
    with Scripted(echo) as upstream:
        told = refused(at(gateway, upstream, path))
    assert path.read_text() == "precious"
    assert f"{path}: bind" in told and "a file that is no socket stands there" in told
    assert "another process" not in told


def test_so_does_a_folder(gateway):
    path = gateway.folder / "folder"
    path.mkdir()
    with Scripted(echo) as upstream:
        told = refused(at(gateway, upstream, path))
    assert path.is_dir() and str(path) in told and "another process" not in told


def test_a_link_to_a_file_is_not_followed_to_it(gateway):
    target, path = gateway.folder / "target", gateway.folder / "link"
    target.write_text("precious")
    path.symlink_to(target)
    with Scripted(echo) as upstream:
        refused(at(gateway, upstream, path))
    assert path.is_symlink() and target.read_text() == "precious"


def test_a_socket_that_somebody_listens_on_is_theirs(gateway):
    path = gateway.folder / "theirs"
    with Scripted(echo) as upstream, socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(path))
        theirs.listen(8)
        # It may be gone in a moment: status 75, to be tried again.
        assert "another process" in refused(at(gateway, upstream, path), 75)
        with Local(path):
            assert theirs.accept()
