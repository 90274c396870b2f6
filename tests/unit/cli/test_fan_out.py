"""Twenty boxes are looked at at the same time, in one trip each: a glance takes as long as the slowest box.

No time is measured. Each trip waits until all twenty have begun, which never comes where one waits for
another to end.
"""

import json
import stat
import sys

import pytest
import yaml

from boxwright.cli import statuses

BOXES = [f"box{number}" for number in range(20)]
#: Python on the box: it tells that a trip has come, and goes on once all have. PATIENCE: in half seconds.
PYTHON = """#!/bin/sh
mkdir -p '{place}'
mktemp '{place}/trip.XXXXXX' >/dev/null
n=0
until test "$(ls '{place}' | wc -l)" -ge {count}; do
    n=$((n+1))
    test $n -lt 400 || {{ echo 'alone all the while' >&2; exit 1; }}
    sleep 0.5
done
exec '{python}' "$@"
"""


@pytest.fixture
def inventory(tmp_path):
    """Twenty boxes that are this machine, and the folder in which each trip leaves a file."""
    python, place = tmp_path / "python3", tmp_path / "trips"
    python.write_text(PYTHON.format(place=place, count=len(BOXES), python=sys.executable))
    python.chmod(stat.S_IRWXU)
    common = {
        "ansible_connection": "local",
        "ansible_become": False,
        "ansible_python_interpreter": str(python),
        "box_root_dir": str(tmp_path / "root"),
        "box_config_dir": str(tmp_path / "etc"),
    }
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "hosts.yml").write_text(
        yaml.safe_dump({"all": {"hosts": {name: {} for name in BOXES}, "vars": common}})
    )
    return tmp_path / "hosts", place


def test_twenty_boxes_take_one_trip(inventory, capsys):
    path, trips = inventory
    with pytest.raises(SystemExit) as end:
        statuses.status([], [str(path)], every=True, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert [name for name, one in found.items() if one["failure"]] == []
    assert sorted(found) == sorted(BOXES)
    assert len(list(trips.iterdir())) == len(BOXES)
    # There are no cards here, which a glance calls no good.
    assert end.value.code == 1
