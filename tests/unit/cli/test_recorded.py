"""Facts go to a file and come back as they were; a file that is not what is needed says so."""

import json
from pathlib import Path

import pytest

from boxwright.cli.recorded import facts_of
from boxwright.cli.ssh_trouble import by_host
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.facts import parse
from boxwright.facts.model import FORMAT

RAW = json.loads(
    (Path(__file__).parents[1] / "facts" / "recorded" / "debian13-rtx5090-virgin.json").read_text()
)


def to_json(found):
    """What `invoke facts --json` prints."""
    return by_host({name: one.to_json() for name, one in found.items()}, {}, alone=len(found) == 1)


@pytest.fixture
def write(tmp_path):
    def put(value):
        file = tmp_path / "facts.json"
        file.write_text(value if isinstance(value, str) else json.dumps(value))
        return str(file)

    return put


@pytest.mark.parametrize("hosts", [["box1"], ["box1", "box2"]])
def test_what_facts_prints_is_what_a_plan_reads(hosts, write):
    found = {host: parse(RAW, host) for host in hosts}
    assert facts_of(write(to_json(found)), hosts) == found


def test_one_host_of_several(write):
    found = {host: parse(RAW, host) for host in ("box1", "box2")}
    assert facts_of(write(to_json(found)), ["box2"]) == {"box2": found["box2"]}


def document(**changes):
    return {**to_json({"box1": parse(RAW, "box1")}), **changes}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "is not what `invoke facts --json` prints"),
        ("{}", "is not what `invoke facts --json` prints"),
        ('{"error": {"what": "x"}}', "an error that a verb told"),
        (RAW, "is not what `invoke facts --json` prints"),
        (document(host="box2"), "holds the facts of box2, not of box1"),
        (document(host=""), "holds the facts of a host without a name"),
        (document(format=FORMAT - 1), "was recorded by an older Boxwright"),
        (document(format=FORMAT + 1), "was recorded by a newer Boxwright"),
        (document(format=None), "was recorded by an older Boxwright"),
        ({key: value for key, value in document().items() if key != "format"}, "an older Boxwright"),
        (document(cards="many"), "HostFacts.cards: a list is needed"),
        (document(memory={"total": "1"}), "HostFacts.memory"),
    ],
    ids=str,
)
def test_what_is_no_such_file(content, told, write):
    with pytest.raises(UserError) as error:
        facts_of(write(content), ["box1"])
    assert error.value.status == EXIT_BAD_INPUT
    assert told in str(error.value)
    assert "./invoke facts --host" in str(error.value)


def test_no_file(tmp_path):
    for path in (str(tmp_path), str(tmp_path / "none"), ""):
        with pytest.raises(UserError, match="cannot be read"):
            facts_of(path, ["box1"])
