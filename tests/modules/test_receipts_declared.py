"""How roles are declared, as receipts know it."""

import pytest

from boxwright.ansible import receipts

VALUES = {
    "box_proxy": "http://proxy:3128",
    "box_hub": {"token": "hf_secret"},
    "gpu_tuning_max_clock_mhz": 2100,
    "gpu_tuning_persistence": True,  # the role's own default
    "box_deployments": [{"name": "a", "model": "m", "api_key": "k1"}, {"name": "b", "model": "n"}],
}


def differs(**changed):
    before, after = receipts.declared(VALUES), receipts.declared({**VALUES, **changed})
    return {
        role: sorted(
            name for name in before[role] | after[role] if before[role].get(name) != after[role].get(name)
        )
        for role in before
        if before[role] != after[role]
    }


def test_a_role_knows_its_own_variables_and_the_shared_ones():
    assert set(receipts.declared(VALUES)["gpu_tuning"]) == {"code", "box_proxy", "gpu_tuning_max_clock_mhz"}


def test_no_value_is_to_be_read():
    told = repr(receipts.declared(VALUES))
    assert not any(secret in told for secret in ("hf_secret", "k1", "proxy:3128"))


def test_a_variable_matters_to_its_role_alone():
    assert differs(gpu_tuning_max_clock_mhz=1900) == {"gpu_tuning": ["gpu_tuning_max_clock_mhz"]}


def test_what_is_served_is_no_matter_to_the_roles_of_the_host():
    assert set(differs(box_hub={"token": "other"})) == {"model_weights", "model_quantize", "engine"}


def test_a_key_is_another_matter_than_its_deployment():
    changed = [{**VALUES["box_deployments"][0], "api_key": "k2"}, VALUES["box_deployments"][1]]
    assert differs(box_deployments=changed)["engine"] == ["box_deployments[a].api_key"]
    changed = [VALUES["box_deployments"][0], {"name": "b", "model": "o"}]
    assert differs(box_deployments=changed)["engine"] == ["box_deployments[b]"]


@pytest.mark.parametrize("value", [True, None])
def test_a_default_is_the_same_given_or_not(value):
    given = {**VALUES, "gpu_tuning_persistence": True}
    left = {name: one for name, one in VALUES.items() if name != "gpu_tuning_persistence"}
    assert receipts.declared(given) == receipts.declared(left)


def test_another_version_of_a_role_or_of_its_modules_is_another_role(tmp_path, monkeypatch):
    for path, text in {"roles/engine/tasks/main.yml": "a", "boxwright/ansible/modules/m.py": "b"}.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(receipts, "ROOT", tmp_path)
    monkeypatch.setattr(receipts, "_contents", receipts._contents.__wrapped__)
    hashes = [receipts.code("engine")]
    (tmp_path / "roles/engine/tasks/main.yml").write_text("A")
    hashes.append(receipts.code("engine"))
    (tmp_path / "boxwright/ansible/modules/m.py").write_text("B")
    hashes.append(receipts.code("engine"))
    (tmp_path / "roles/engine/molecule").mkdir()
    (tmp_path / "roles/engine/molecule/x.yml").write_text("no matter")
    hashes.append(receipts.code("engine"))
    assert len(set(hashes[:3])) == 3
    assert hashes[3] == hashes[2]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gpu_tuning_cards", {0: {"power_limit_w": 300}, "GPU-1a2b": {"power_limit_w": 250}}),
        ("container_runtime_daemon_config", {"labels": [{1: "a", "b": None}]}),
        ("engine_stage_timeouts_s", {None: 1, "load": 2}),
    ],
)
def test_keys_that_are_no_texts_have_a_hash_too(name, value):
    assert any(name in known for known in receipts.declared({**VALUES, name: value}).values())
    assert differs(**{name: value}) == differs(**{name: dict(reversed(value.items()))})
