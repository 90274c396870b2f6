"""Docker's daemon.json: our settings in other people's file, and out again."""

import json

import pytest
from ansible.module_utils import exact_json
from ansible.module_utils.daemon_json import ConfigError, Receipt, ShapeError, dump, merge, parse
from hypothesis import given
from hypothesis import strategies as st

NONE = Receipt([], [])
OURS = {"features": {"cdi": True}, "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}
THEIRS = {
    "log-opts": {"max-size": "100m"},
    "data-root": "/data/docker",
    "registry-mirrors": ["https://mirror.example"],
}


@pytest.mark.parametrize("text", [None, "", "  \n", "\ufeff", "{}", "\ufeff{}\n"])
def test_nothing_there_is_no_settings(text):
    assert parse(text, "daemon.json") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1,}', "daemon.json:1 "),
        ('{\n"a": }', "daemon.json:2 "),
        ("[]", "a list"),
        ('"x"', "a text"),
        ("null", "null"),
        ('{"a": 1,\n"a": 2}', "daemon.json:2 .* 'a' stands there already, in line 1"),
        ('{"a":\n1e400}', "daemon.json:2 .* 1e400 is too great"),
        ('{"a":\n{"b": NaN}}', "daemon.json:2 .* 'NaN'"),
        ('{"a":\n' * 600 + "1" + "}" * 600, "daemon.json:66 .* nested deeper"),
    ],
)
def test_what_is_no_settings_is_named_and_left(text, said):
    with pytest.raises(ConfigError, match=said) as error:
        parse(text, "/etc/docker/daemon.json")
    assert "/etc/docker/daemon.json" in str(error.value)
    assert "left as it is" in str(error.value)


@pytest.mark.parametrize("value", ["1.10", "1e3", "-0", "12345678901234567890123", '"\\ud800 ä"'])
def test_what_is_not_ours_comes_back_to_the_letter(value):
    text = f'{{\n"theirs": {value},\n"log-level": {value}\n}}\n'
    document = parse(text, "daemon.json")
    merged, receipt = merge(document, {"log-level": "warn"}, NONE)
    assert f'"theirs": {value}' in dump(merged, text).replace("    ", "")
    kept = Receipt.load(receipt.text(), "receipt")
    assert dump(merge(merged, {}, kept)[0], text).replace("    ", "") == text


@pytest.mark.parametrize("declared", [1.1, 10])
@pytest.mark.parametrize("in_list", [True, False])
def test_the_same_number_in_another_spelling_is_the_same_setting(declared, in_list):
    text = {1.1: "1.10", 10: "10"}[declared]
    document = parse(f'{{"a": [{text}]}}' if in_list else f'{{"a": {text}}}', "x")
    wanted = exact_json.exact({"a": [declared] if in_list else declared})
    assert merge(document, wanted, NONE) == (document, NONE)


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", "7", '{"entries": [], "made": [[1]]}', '{"entries": [5], "made": []}',
        '{"entries": [{"path": [], "value": 1, "had": false, "before": null, "item": false}], "made": []}',
        '{"entries": [{"path": [5], "value": 1, "had": false, "before": null, "item": false}], "made": []}',
        '{"entries": [{"path": "x"}], "made": []}', "[" * 5000, '{"entries": 1, "made": 1}',
    ],
)  # fmt: skip
def test_a_damaged_receipt_is_named(text):
    with pytest.raises(ConfigError, match=r"receipt\.json, which keeps"):
        Receipt.load(text, "receipt.json")


def test_a_shape_that_clashes_is_named_with_its_line_and_value():
    text = '{\n"a": {\n"b": "x"}}'
    with pytest.raises(ShapeError) as error:
        merge(parse(text, "x"), {"a": {"b": {"c": 1}}}, NONE)
    told = str(error.value.located("daemon.json", text))
    assert told.startswith('daemon.json:3: a.b is a text there: "x". Put in its place is to be a mapping')
    assert '"x"' not in str(error.value.located("config.json", text, secret=True))


def test_ours_come_after_theirs():
    merged, _ = merge(THEIRS, OURS, NONE)
    assert list(merged) == [*THEIRS, "features", "runtimes"]
    assert {key: merged[key] for key in THEIRS} == THEIRS


CASES = [
    # before, declared, after
    ({}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ({"a": {"c": 2}}, {"a": {"b": 1}}, {"a": {"c": 2, "b": 1}}),
    ({"a": 1}, {"a": 2}, {"a": 2}),
    ({"a": True}, {"a": 1}, {"a": 1}),
    ({"a": [1]}, {"a": [2]}, {"a": [1, 2]}),
    ({"a": [1, 2]}, {"a": [2]}, {"a": [1, 2]}),
    ({"exec-opts": ["x=1", "y=1"]}, {"exec-opts": ["x=2"]}, {"exec-opts": ["x=2", "y=1"]}),
    ({"hosts": ["x=1"]}, {"hosts": ["x=2"]}, {"hosts": ["x=1", "x=2"]}),
    ({"a": {"b": {"c": 1}}}, {"a": {}}, {"a": {"b": {"c": 1}}}),
    ({"runtimes": {"nvidia": {"path": "/old", "args": ["x"]}}}, OURS,
     {"runtimes": {"nvidia": {**OURS["runtimes"]["nvidia"], "args": ["x"]}}, "features": {"cdi": True}}),
]  # fmt: skip


@pytest.mark.parametrize(("before", "declared", "after"), CASES)
def test_merge_and_back(before, declared, after):
    merged, receipt = merge(before, declared, NONE)
    assert merged == after
    assert merge(merged, declared, receipt) == (merged, receipt)
    assert merge(merged, {}, receipt) == (before, NONE)


@pytest.mark.parametrize(
    ("before", "declared"),
    [
        ({"a": 1}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": 1}),
        ({"a": 1}, {"a": [1]}),
        ({"a": [1]}, {"a": {"b": 1}}),
    ],
)
def test_shapes_that_clash_stop_it(before, declared):
    kept = json.loads(json.dumps(before))
    with pytest.raises(ConfigError, match="a"):
        merge(before, declared, NONE)
    assert before == kept


def test_a_dropped_setting_goes_back_to_what_it_was():
    first, receipt = merge({"log-level": "warn"}, {"log-level": "debug", "debug": True}, NONE)
    assert first == {"log-level": "debug", "debug": True}
    second, receipt = merge(first, {"debug": True}, receipt)
    assert second == {"log-level": "warn", "debug": True}
    assert merge(second, {}, receipt)[0] == {"log-level": "warn"}


def test_what_somebody_changed_since_is_theirs():
    _, receipt = merge({}, {"log-level": "debug"}, NONE)
    assert merge({"log-level": "error"}, {}, receipt) == ({"log-level": "error"}, NONE)


def test_what_was_there_already_is_not_ours():
    merged, receipt = merge(OURS, OURS, NONE)
    assert receipt == NONE
    assert merge(merged, {}, receipt)[0] == OURS


def test_a_receipt_is_kept_as_json():
    _, receipt = merge({"a": [1]}, {"a": [2], "b": {"c": None}}, NONE)
    assert Receipt.from_json(json.loads(json.dumps(receipt.to_json()))) == receipt


@pytest.mark.parametrize("indent", ["  ", "    ", "\t"])
def test_the_files_own_indentation_is_kept(indent):
    text = json.dumps({"a": {"b": 1}}, indent=indent)
    assert dump({"a": {"b": 2}}, text) == json.dumps({"a": {"b": 2}}, indent=indent) + "\n"


KEYS = st.sampled_from(["x", "labels", "z"])
LEAVES = st.one_of(st.booleans(), st.none(), st.integers(0, 3), st.sampled_from("abc"))
LISTS = st.lists(
    st.one_of(st.integers(0, 3), st.sampled_from(["a=1", "a=2", "b"])),
    max_size=3,
    unique_by=lambda element: str(element).partition("=")[0],
)
VALUES = st.recursive(
    LEAVES, lambda below: st.one_of(LISTS, st.dictionaries(KEYS, below, max_size=3)), max_leaves=8
)
SETTINGS = st.dictionaries(KEYS, VALUES, max_size=3)


@given(SETTINGS, SETTINGS, SETTINGS)
def test_whatever_was_declared_the_file_comes_back(before, first, second):
    try:
        after_first, receipt = merge(before, first, NONE)
        after_second, second_receipt = merge(after_first, second, receipt)
    except ConfigError:
        return
    assert merge(after_first, first, receipt) == (after_first, receipt)
    assert merge(after_second, {}, second_receipt) == (before, NONE)
    restored = merge(after_first, {}, receipt)[0]
    assert restored == before
    assert list(restored) == list(before)
