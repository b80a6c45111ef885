"""Promise: SIGTERM loses no request; SIGHUP loses nothing at all."""

import json
import signal
import threading

from harness import call, eventually


def test_requests_in_flight_are_finished(gateway):
    gateway.webgate(changes={"shutdown": {"linger": "1s", "timeout": "15s"}}).start().warm()
    found = []
    callers = [
        threading.Thread(target=lambda: found.append(gateway.get("/hr/rest/slow?ms=3000").status)) for _ in range(10)
    ]
    for caller in callers:
        caller.start()
    eventually(
        lambda: sum("/slow" in line for line in gateway.lab.get("/requests")) == 10, what="ten requests in flight"
    )
    gateway.may_exit = True
    gateway.process.send_signal(signal.SIGTERM)
    eventually(lambda: status(gateway.admin) == 503, within=3, what="not ready while draining")
    for caller in callers:
        caller.join(30)
    assert found == [200] * 10
    assert gateway.process.wait(20) == 0


def status(admin):
    try:
        return call(admin, path="/readyz", timeout=2).status
    except OSError:
        return 0


def test_a_stop_without_work_is_quick_and_clean(hot):
    assert hot.stop(within=8) == 0


def test_a_hung_request_does_not_hold_the_stop_for_ever(gateway):
    gateway.webgate(changes={"shutdown": {"linger": "0s", "timeout": "2s"}}).start().warm()
    gateway.lab.faults(hang=True)
    with gateway.raw() as raw:
        raw.send(f"GET /hr/rest/employees/1 HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n")
        eventually(lambda: gateway.lab.counts()["protected_requests"] >= 2, what="the request upstream")
        gateway.may_exit = True
        gateway.process.send_signal(signal.SIGTERM)
        gateway.process.wait(10)
