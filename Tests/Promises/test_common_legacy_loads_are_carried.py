"""Promise: many callers at once, with and without keep-alive, with a token that keeps being revoked, see only 200."""

import http.client
import threading

from harness import address, send, together


def test_five_hundred_callers_at_once(hot):
    assert {answer.status for answer in together(500, lambda i: hot.get("/hr/rest/slow?ms=200"))} == {200}
    assert hot.lab.counts()["issuer_calls"] == 0


def test_revocations_under_load(hot):
    stop = threading.Event()

    def work(_):
        connection = http.client.HTTPConnection(*address(hot.listen), timeout=30)
        statuses = []
        try:
            while not stop.is_set():
                statuses.append(send(connection, "GET", "/hr/rest/employees/1").status)
        finally:
            connection.close()
        return statuses

    def revoke():
        for _ in range(10):
            hot.lab.post("/revoke")
            stop.wait(0.3)
        stop.set()

    revoker = threading.Thread(target=revoke)
    revoker.start()
    seen = [status for statuses in together(20, work) for status in statuses]
    revoker.join()
    assert seen and set(seen) == {200}, {status: seen.count(status) for status in set(seen)}
    assert hot.lab.counts()["access"] <= 11
