"""A file of ours goes with the directories that were made for it, and with nothing of anybody else's."""

import pytest
from ansible.module_utils.command import take_away


@pytest.mark.parametrize(
    ("path", "beside", "left"),
    [
        ("etc/boxwright/engines/one/key", [], ["etc"]),
        ("etc/boxwright/engines/one/key", ["etc/boxwright/x"], ["etc", "etc/boxwright", "etc/boxwright/x"]),
        ("etc/docker/daemon.json.before-1", [], ["etc", "etc/docker"]),
        ("etc/boxwright-of-mine/key", [], ["etc", "etc/boxwright-of-mine"]),
    ],
)
def test_what_goes(tmp_path, path, beside, left):
    for one in (path, *beside):
        (tmp_path / one).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / one).touch()
    take_away(str(tmp_path / path))
    assert sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")) == left
    take_away(str(tmp_path / path))
