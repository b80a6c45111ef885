import contextlib
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Promises"))

from harness import Lab
from roots import Packages


def pytest_configure(config):
    # Helpers come from pages of promises, which know this mark.
    config.addinivalue_line("markers", "alone: measures, mounts or moves so much that others beside it would be disturbed")


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """The same tree as two versions of the package."""
    return Packages(tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="session")
def page_lab():
    with contextlib.closing(Lab()) as lab:
        yield lab
