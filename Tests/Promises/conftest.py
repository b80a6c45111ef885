import contextlib
import os
import subprocess

import pytest

import versions
from harness import ROOT, Cardea, Lab, Nginx, Provider, held
from peers import Redis
from served import Echo
from upgrades import reaping


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: measures, mounts or moves so much that others beside it would be disturbed")


def pytest_report_header():
    """What the promises are kept against: a failure elsewhere begins with comparing these lines."""
    return versions.lines()


def pytest_terminal_summary(terminalreporter):
    """The seconds of every step, when `make test` ends with this one."""
    if "CARDEA_STEPS" in os.environ:
        told = subprocess.run([ROOT / ".ci/step", "table"], stdout=subprocess.PIPE, text=True).stdout
        terminalreporter.section("seconds of each step")
        terminalreporter.write(told)


@pytest.fixture(scope="session")
def lab_process():
    lab = Lab()
    yield lab
    lab.close()


@pytest.fixture
def lab(lab_process):
    """The lab without counts, faults or tokens of an earlier test."""
    lab_process.reset()
    return lab_process


@pytest.fixture(scope="session")
def provider_process():
    with contextlib.closing(Provider()) as provider:
        yield provider


@pytest.fixture
def provider(provider_process):
    """The authorization server without clients, tokens or faults of an earlier test."""
    provider_process.post("reset")
    return provider_process


@pytest.fixture
def orphans():
    """What upgrades start becomes a child of the tests. Stands before the gateway among the fixtures of a test, so that the status of the
    last process is seen."""
    with reaping():
        yield


@pytest.fixture
def gateways(lab, tmp_path):
    yield from held(Cardea, lab, tmp_path)


@pytest.fixture
def gateway(gateways):
    """One gateway, not configured yet: gateway.webgate().start()."""
    return gateways()


@pytest.fixture
def hot(gateway):
    """A running gateway in front of the HR API that holds a token; the lab's counts begin after the first grant."""
    gateway.webgate().start().warm()
    gateway.lab.reset(tokens=False)
    return gateway


@pytest.fixture
def nginx(lab, tmp_path):
    """nginx with TLS in front of the lab."""
    folder = tmp_path / "nginx"
    folder.mkdir()
    with contextlib.closing(Nginx(lab, folder)) as server:
        yield server


@pytest.fixture
def redis(tmp_path):
    """In memory alone: what it had is gone when it dies."""
    server = Redis(tmp_path / "redis")
    yield server
    server.close()


@pytest.fixture
def echo():
    with contextlib.closing(Echo()) as server:
        yield server
