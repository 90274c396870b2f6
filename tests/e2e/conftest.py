"""The box that all tests of the whole way share: made once, from nothing."""

import re

import pytest


@pytest.fixture(scope="session")
def first(verb):
    """The first run on a lab that was not there."""
    assert verb("lab.down").status == 0
    ran = verb("provision", "--host", "lab1")
    assert ran.status == 0, ran.output
    return ran


@pytest.fixture(scope="session")
def box(first, simulated):
    return simulated("lab1")


@pytest.fixture(scope="session")
def address(first):
    return re.search(r"endpoint +(http://\S+)/v1 ", first.output)[1]


@pytest.fixture(scope="session")
def key(first, verb):
    ran = verb("key", "--host", "lab1")
    assert ran.status == 0, ran.output
    return ran.stdout.strip()
