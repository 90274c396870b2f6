"""That each rule is tried: rules_test.yml itself runs in the role's scenario, with a real promtool."""

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
GROUPS = yaml.safe_load((ROOT / "roles/monitoring/files/rules.yml").read_text())["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
TESTS = yaml.safe_load(Path(__file__).with_name("rules_test.yml").read_text())["tests"]
ALERTS = {rule["alert"] for rule in RULES if "alert" in rule}


def alerts_where(ring):
    found = [case for test in TESTS for case in test.get("alert_rule_test", ())]
    return {case["alertname"] for case in found if bool(case["exp_alerts"]) is ring}


def test_each_alert_is_seen_to_ring_and_not_to():
    assert alerts_where(True) == ALERTS
    assert alerts_where(False) == ALERTS


def test_each_record_has_a_value_that_is_expected():
    tried = {
        case["expr"] for test in TESTS for case in test.get("promql_expr_test", ()) if case["exp_samples"]
    }
    for record in (rule["record"] for rule in RULES if "record" in rule):
        assert any(record in expr for expr in tried), record


def test_each_alert_says_what_and_where():
    for rule in RULES:
        if "alert" in rule:
            assert set(rule["annotations"]) == {"summary", "description"}
            assert rule["labels"]["severity"] in ("critical", "warning")
            assert "{{ $labels.box }}" in rule["annotations"]["summary"]


def test_alerts_know_no_names_of_engines():
    """What a release calls otherwise is the records' business alone."""
    for rule in RULES:
        if "alert" in rule:
            assert "vllm:" not in rule["expr"]
            assert "sglang:" not in rule["expr"]
