"""What another user than root may read and write of what its container is given."""

import pytest
from ansible.module_utils import engine_owner
from ansible.module_utils.engine_owner import make_cache, unreadable

NOBODY = "2000:2000"


@pytest.fixture
def model(tmp_path):
    tree = tmp_path / "model"
    (tree / "part").mkdir(parents=True, mode=0o755)
    (tree / "part" / "weights").write_text("x")
    (tree / "part" / "weights").chmod(0o644)
    for directory in (tree, tree / "part"):
        directory.chmod(0o755)
    return tree


def test_what_everybody_may_read(model):
    (model / "gone").symlink_to("nowhere")
    assert unreadable(str(model), NOBODY) is None


@pytest.mark.parametrize(
    ("name", "mode"), [("part/weights", 0o640), ("part", 0o750), ("part", 0o744), (".", 0o700)]
)
def test_what_is_closed_is_named(model, name, mode):
    path = model / name
    path.chmod(mode)
    assert unreadable(str(model), NOBODY) == str(path)
    # Whoever owns it, or is of its group where that may, is not kept out.
    seen = path.stat()
    assert unreadable(str(model), f"{seen.st_uid}:{seen.st_gid}") is None
    if mode in (0o640, 0o750):
        assert unreadable(str(model), f"{seen.st_uid + 1}:{seen.st_gid}") is None


def test_a_cache_is_given_to_its_user_once(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(engine_owner.os, "chown", lambda *call: given.append(call))
    cache = tmp_path / "cache" / "qwen" / "user-2000"
    make_cache(str(cache), "2000:0")
    assert given == [(str(cache), 2000, 0)]
    own = cache.stat()
    assert own.st_mode & 0o777 == 0o700
    make_cache(str(cache), f"{own.st_uid}:{own.st_gid}")
    make_cache(str(cache), None)
    assert len(given) == 1
