"""The plan and the role that quantizes name the same models."""

from __future__ import annotations

from pathlib import Path

import yaml

from boxwright.catalog import reading

ROOT = Path(__file__).resolve().parents[3]


def test_the_role_quantizes_what_the_plan_lets_pass():
    role = yaml.safe_load((ROOT / "roles/model_quantize/vars/main.yml").read_text())
    plan = {method: one["model_types"] for method, one in reading.yaml_file("quantizers.yml").items()}
    assert plan == role["_model_quantize_architectures"]
    assert list(plan) == list(role["_model_quantize_tools"])
