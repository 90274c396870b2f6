"""The signatures as data: each finds its own line, no other fatal one claims it, and its words are right."""

import json
import re
from pathlib import Path

import pytest

from boxwright.doctor import Log, signatures
from boxwright.doctor import signature as signature_module
from boxwright.doctor.condition import Condition
from boxwright.doctor.matcher import find
from boxwright.doctor.signature import SignatureError, parse

ROOT = Path(__file__).resolve().parents[3]
ALL = signatures()
TEXTS = [one for one in ALL if one.texts]
READINGS = [one for one in ALL if one.when]
LINES = [(one, line) for one in TEXTS for line in one.example]


def ids(values):
    return [value[0].id if isinstance(value, tuple) else value.id for value in values]


def test_there_are_many():
    assert len(ALL) >= 200
    assert {one.severity for one in ALL} == {"fatal", "slows", "harmless"}
    assert {place for one in ALL for place in one.where} == set(signature_module.PLACES)


@pytest.mark.parametrize(("signature", "line"), LINES, ids=ids(LINES))
def test_an_example_is_found_and_a_near_miss_is_not(signature, line):
    text = next(text for text in signature.texts if text.find(line) is not None)
    middle = line.index(text.anchor) + len(text.anchor) // 2
    changed = "Q" if line[middle] != "Q" else "X"
    assert text.find(line[:middle] + changed + line[middle + 1 :]) is None
    assert text.find(line[:middle] + line[middle + 1 :]) is None


@pytest.mark.parametrize(("signature", "line"), LINES, ids=ids(LINES))
def test_no_other_fatal_signature_claims_it(signature, line):
    claimed = {
        one.signature.id
        for one in find(Log("log", line.encode()), TEXTS)
        if one.severity == "fatal" and not one.signature.consequence
    }
    # One that explains the other may be in the same line: the deeper one is then the cause.
    related = {one.id for one in TEXTS if one.id in signature.explains or signature.id in one.explains}
    assert claimed - related - {signature.id} == set()


@pytest.mark.parametrize("signature", TEXTS, ids=ids(TEXTS))
def test_every_text_has_an_example(signature):
    for text in signature.texts:
        assert any(text.find(line) is not None for line in signature.example), text.text


@pytest.mark.parametrize("signature", READINGS, ids=ids(READINGS))
def test_values_of_an_example_hold_and_each_is_needed(signature):
    for values in signature.example:
        assert signature.holds(values)
        for name in values:
            assert not signature.holds({key: value for key, value in values.items() if key != name})


@pytest.mark.parametrize("signature", ALL, ids=ids(ALL))
def test_its_words_are_whole(signature):
    for example in signature.example:
        values = signature.find(example) if signature.texts else example
        cause, fix = signature.told(values)
        assert "?" not in re.sub(r"\?$", "", cause) or "?" in signature.cause
        assert (
            "{" not in cause.replace("{repo, revision}", "") or "{{" in signature.cause or "{" in str(values)
        )
        assert cause[0].isupper() or cause[0].isdigit() or signature.cause.startswith("{")
        if signature.severity == "harmless":
            assert not fix
        else:
            assert fix, "a fault without a way out"
    assert signature.source.startswith("https://")


def test_variables_that_fixes_name_are_there():
    schema = json.loads((ROOT / "inventory" / "schema.json").read_text())
    variables, deployment = set(schema["properties"]), set()
    for entry in json.dumps(schema).split('"'):
        deployment.add(entry)
    for one in ALL:
        for fix in one.fix:
            for name in re.findall(
                r"\b(?:box|nvidia_driver|gpu_tuning|engine|container_runtime|model_weights)_\w+", fix
            ):
                assert name in variables, f"{one.id}: {name}"
            for name in re.findall(r"(?:^|set )(\w+): ", fix):
                assert name in deployment or name == "power", f"{one.id}: {name}"
            for verb in re.findall(r"\binvoke (\w+)", fix):
                assert re.search(rf"^def {verb}\(", (ROOT / "tasks.py").read_text(), re.MULTILINE), verb


#: The lines of the field reports (tables and warnings) and of vllm.md, and what each must be called.
SEVERITIES = [
    ("cudagraph-piecewise", "harmless"),
    ("padding-layers", "harmless"),
    ("jit-while-serving", "harmless"),
    ("mtp-layer-run-again", "harmless"),
    ("mamba-page-padding", "harmless"),
    ("mamba-cache-align", "harmless"),
    ("method-renamed-mtp", "harmless"),
    ("gdn-kernel-not-built", "slows"),
    ("eager-mode", "slows"),
    ("context-reduced-to-fit", "slows"),
    ("box-went-down-by-itself", "slows"),
    ("fp8-kv-needs-hopper-flash-attention", "fatal"),
    ("option-enable-mtp", "fatal"),
    ("attention-backend-unknown", "fatal"),
    ("too-many-sequences-for-state-blocks", "fatal"),
]
XIDS = [
    8,
    13,
    31,
    32,
    38,
    43,
    45,
    48,
    61,
    62,
    63,
    64,
    68,
    69,
    74,
    79,
    92,
    94,
    95,
    109,
    119,
    120,
    121,
    140,
    143,
    154,
]


@pytest.mark.parametrize(("name", "severity"), SEVERITIES)
def test_what_the_field_reports_saw_is_called_by_its_name(name, severity):
    assert {one.id: one.severity for one in ALL}[name] == severity


@pytest.mark.parametrize("code", XIDS)
def test_xid_codes_are_known_and_not_mistaken_for_each_other(code):
    said = (
        "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)" if code == 154 else "pid=1"
    )
    line = f"kernel: NVRM: Xid (PCI:0000:01:00): {code}, {said}"
    assert [one.id for one in TEXTS if one.id.startswith("xid-") and one.find(line)] == [f"xid-{code}"]


GOOD = {
    "id": "x", "where": ["engine"], "text": "some text {value:int}", "severity": "fatal",
    "cause": "{value} is bad", "fix": ["do {value}"], "source": "https://example.org",
    "example": "some text 1",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"severity": "bad"}, "severity is one of"),
        ({"where": ["moon"]}, "severity is one of"),
        ({"text": "abc"}, "shorter than"),
        ({"text": "{value}abcdefgh"}, "must begin with text"),
        ({"text": "abcdefgh {value:float}"}, "is none of"),
        ({"text": "abcdefgh {value"}, "expected '}'"),
        ({"cause": "{other} is bad"}, "what not every text captures"),
        ({"fix": ["do {other}"]}, "a fix names a value"),
        ({"source": "somewhere"}, "public source"),
        ({"example": []}, "public source"),
        ({"when": {"reading": "x", "is": 1}}, "it needs text, or when"),
        ({"extra": 1}, "unknown: extra"),
        ({"versions": {"vllm": "new"}}, "is no range of versions"),
        ({"cause": None}, "cause"),
    ],
)
def test_data_that_is_wrong_is_refused_by_name(change, said):
    entry = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(SignatureError, match=re.escape(said)) as error:
        parse(entry, "x.yml")
    assert str(error.value).startswith("x.yml: x: ")


def test_versions_bound_a_signature():
    bounded = parse({**GOOD, "versions": {"vllm": ">=0.20.2,<0.33"}}, "x.yml")
    assert [bounded.covers({"vllm": version}) for version in ("0.20.1", "0.20.2", "0.32.9", "0.33.0")] == [
        False, True, True, False,
    ]  # fmt: skip
    assert bounded.covers({})


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        ({"reading": "x", "is": True}, True, True),
        ({"reading": "x", "is": True}, False, False),
        ({"reading": "x", "at_least": 3}, 3, True),
        ({"reading": "x", "below": 3}, 3, False),
        ({"reading": "x", "above": 3}, 3, False),
        ({"reading": "x", "above": 3}, "many", False),
        ({"reading": "x", "below": 3}, None, False),
        ({"reading": "x", "below": 3}, True, False),
    ],
)
def test_conditions(condition, value, holds):
    assert Condition.parse(condition).holds({"x": value}) is holds
