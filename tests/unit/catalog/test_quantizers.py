"""The plan and the role that quantizes name the same models."""

from __future__ import annotations

from pathlib import Path

import yaml

from boxwright.catalog import reading

ROOT = Path(__file__).resolve().parents[3]


def test_the_role_quantizes_what_the_plan_lets_pass():
    role = yaml.safe_load((ROOT / "roles/model_quantize/vars/main.yml").read_text())
    assert (
        reading.yaml_file("quantizers.yml")["autoawq"]["model_types"] == role["_model_quantize_architectures"]
    )
