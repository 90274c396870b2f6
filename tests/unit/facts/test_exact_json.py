"""JSON that must come back as it was, and what cannot be kept named with its line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.facts.parsers import exact_json
from boxwright.facts.parsers.exact_json import NotExact, Number

NUMBERS = ["1.10", "1e3", "1E+3", "-0", "0.0", "-0.0", "1" + "0" * 200, "0." + "1" * 40, "9007199254740993"]


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_keep_their_text(number):
    assert (
        exact_json.write(exact_json.read(f'{{"a": [{number}]}}').value, "") == f'{{\n"a": [\n{number}\n]\n}}'
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1.10", "1.1", True),
        ("1e3", "1000.0", True),
        ("1e3", "1000", False),
        ("1", "1.0", False),
        ("-0", "0", True),
        ("0e99999999999999999999", "0.0", True),
        ("9007199254740993", "9007199254740992", False),
    ],
)
def test_numbers_are_the_same_by_value_and_kind(one, other, same):
    assert (Number(one) == Number(other)) is same
    assert (hash(Number(one)) == hash(Number(other))) is same


def test_a_number_is_no_truth():
    assert Number("1") != True  # noqa: E712
    assert True not in [Number("1")]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('{"a": 1,\n "b": 2,\n "a": 3}', 3, "the key 'a' stands there already, in line 1"),
        ('{"x": [{}, {"a": 1,\n"a": 1}]}', 2, "the key 'a'"),
        ('{"a":\n1e400}', 2, "1e400 is too great"),
        ('{"a":\n-1e400}', 2, "-1e400 is too great"),
        ('{"a": 1' + "0" * 5000 + "}", 1, "too great"),
        ('{"a": 1e-400}', 1, "1e-400 is too small"),
        ('{"a": 1e-99999999999999999999}', 1, "too small"),
        ('{"a":\n\nNaN}', 3, "'NaN' is no value of JSON"),
        ('{"a": Infinity}', 1, "'Infinity' is no value"),
        ('{"a": -Infinity}', 1, "'-Infinity' is no value"),
        ('{"a": 012}', 1, "'012' is no value"),
        ('{"a": .5}', 1, "'.5' is no value"),
        ('{"a": 1.}', 1, "'1.' is no value"),
        ('{"a": True}', 1, "'True' is no value"),
        ('{"a": \u0661}', 1, "no value"),
        ('{\n"a": [1,\n]}', 2, "a comma before ]"),
        ('{"a": 1,\n}', 1, "a comma before }"),
        ("{'a': 1}", 1, "in the place of a key in double quotes"),
        ('{"a" 1}', 1, "'1' in the place of a colon"),
        ('{"a": 1\n"b": 2}', 2, "in the place of a comma or }"),
        ('{"a": 1} x', 1, "'x' after the end"),
        ('{"a": "b\nc"}', 1, "invalid control character"),
        ('{"a": "b', 1, "unterminated string"),
        ('{"a": 1', 1, "the end of the file in the place of a comma"),
        ('{"a": 1 // why\n}', 1, "'//' in the place of a comma"),
        ('{"a":\n' * 600 + "1" + "}" * 600, 66, "nested deeper than 64 levels"),
        ("[" * 100_000, 1, "nested deeper"),
        ("", 1, "the end of the file is no value"),
    ],
)
def test_what_cannot_be_kept_is_named_with_its_line(text, line, said):
    with pytest.raises(NotExact) as error:
        exact_json.read(text)
    assert said in str(error.value)
    assert (error.value.line, error.value.column > 0) == (line, True)
    assert len(str(error.value)) < 200


def test_half_a_character_stays_an_escape():
    text = '{\n"a": "\\ud800 \\udc80 ä \U0001f600"\n}'
    written = exact_json.write(exact_json.read(text).value, "")
    assert written == text
    written.encode("utf-8")


def test_where_each_setting_stands():
    lines = exact_json.read('{\n"a": {"b":\n1},\n"c": [1,\n{"d": 1}]}').lines
    assert lines == {("a",): 2, ("a", "b"): 2, ("c",): 4, ("c", "1", "d"): 5}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": {"b": float("inf")}}, "x.a.b: inf is no number"),
        ({"a": [1, float("nan")]}, "x.a[1]: nan is no number"),
        ({"a": 10**400}, "x.a: the number 1000"),
        ({"a": "\ud800"}, "x.a holds '\\ud800', half a character"),
        ({"\udc80": 1}, "half a character"),
    ],
)
def test_values_of_elsewhere_that_json_has_not(value, said):
    with pytest.raises(NotExact) as error:
        exact_json.exact(value, "x")
    assert said in str(error.value)
    str(error.value).encode("utf-8")


def test_values_of_elsewhere_that_are_too_deep():
    value = {}
    for _ in range(500):
        value = {"a": value}
    with pytest.raises(NotExact, match="nested deeper"):
        exact_json.exact(value, "x")


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda below: st.one_of(st.lists(below, max_size=4), st.dictionaries(st.text(), below, max_size=4)),
    max_leaves=12,
)


@given(VALUES, st.sampled_from(["", "  ", "\t"]))
def test_it_reads_and_writes_what_python_does(value, indent):
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    document = exact_json.read(text).value
    assert document == exact_json.exact(value)
    assert exact_json.write(document, indent) == text
    assert json.loads(exact_json.write(document, indent)) == value


@given(st.text(alphabet='{}[]:,"\\ \n0123456789.eE+-truefalsn\ud800', max_size=30))
def test_it_takes_no_text_that_python_does_not(text):
    try:
        exact_json.read(text)
    except NotExact:
        return
    json.loads(text)
