"""A box that is off is told by one word in the JSON of every verb, and holds up none of the others."""

import json

import pytest

from boxwright.cli import (
    benching,
    doctoring,
    exporting,
    histories,
    journals,
    keys,
    models,
    paging,
    reporting,
    statuses,
    verifying,
)
from boxwright.cli.ansible_run import HostReport, RunReport

OFF = {"kind": "unreachable", "message": "ssh: connect to host x port 22: No route to host", "role": None}
INVENTORY = """
all:
  hosts: {box1: {}, box2: {}}
  vars:
    box_gpus: {model: rtx5090, count: 1}
    box_deployments: [{name: qwen, model: qwen3-8b-awq, image: "vllm/vllm-openai:v0.32.0"}]
"""
VERBS = {
    "status": (statuses, lambda paths, out: statuses.status([], paths, every=True, as_json=True)),
    "report": (reporting, lambda paths, out: reporting.report([], paths, every=True, as_json=True)),
    "doctor": (doctoring, lambda paths, out: doctoring.doctor([], paths, every=True, as_json=True)),
    "verify": (verifying, lambda paths, out: verifying.verify([], paths, every=True, as_json=True)),
    "history": (histories, lambda paths, out: histories.history([], paths, every=True, as_json=True)),
    "logs": (journals, lambda paths, out: journals.logs([], paths, every=True, as_json=True)),
    "bench": (benching, lambda paths, out: benching.bench([], paths, every=True, as_json=True)),
    "bench --runs": (benching, lambda paths, out: benching.runs([], paths, every=True, as_json=True)),
    "bench --compare": (
        benching,
        lambda paths, out: benching.comparing([], paths, every=True, first="a", as_json=True),
    ),
    "page": (paging, lambda paths, out: paging.page([], paths, every=True, output=out, as_json=True)),
    "export": (
        exporting,
        lambda paths, out: exporting.export([], paths, every=True, format_="compose", as_json=True),
    ),
    "key": (keys, lambda paths, out: keys.show([], paths, every=True, as_json=True)),
    "models": (models, lambda paths, out: models.show([], paths, every=True, as_json=True)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_failure_says_why(verb, monkeypatch, tmp_path, capsys):
    place = tmp_path / "inventory"
    place.mkdir()
    (place / "hosts.yml").write_text(INVENTORY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    module, call = VERBS[verb]
    boxes = {name: HostReport(name, failure=OFF) for name in ("box1", "box2")}
    monkeypatch.setattr(module, "play", lambda *_, **__: RunReport(4, 1.0, boxes))
    with pytest.raises(SystemExit) as end:
        call([str(place)], str(tmp_path))
    assert end.value.code == 1
    found = json.loads(capsys.readouterr().out)
    found = found["report"]["boxes"] if verb == "report" else found
    assert len(found) == 2
    for one in found.values():
        assert "No route to host" in one["failure"]
        assert not {"unreachable", "failures", "problem"} & set(one)
