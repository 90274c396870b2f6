"""A host is added to a hosts.yml that a person wrote, and nothing else of it changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from boxwright.errors import UserError
from boxwright.spec.host_list import extended
from boxwright.spec.yaml_text import flow

FILE = Path("inventory/local/hosts.yml")
REACH = {"ansible_host": "192.0.2.17", "ansible_user": "me"}
LINE = "box1: {ansible_host: 192.0.2.17, ansible_user: me}"
NEW = f"all:\n  hosts:\n    {LINE}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# mine\n", f"# mine\n{NEW}"),
        ("---\n", f"---\n{NEW}"),
        ("all:\n", NEW),
        ("all:\n  hosts:\n", NEW),
        ("all:\n  hosts:\n    a:", f"all:\n  hosts:\n    a:\n    {LINE}\n"),
        (
            "all:\n  hosts:\n    a: {x: 1}  # one\n    # after\n\n  vars: {b: 1}\n",
            f"all:\n  hosts:\n    a: {{x: 1}}  # one\n    {LINE}\n    # after\n\n  vars: {{b: 1}}\n",
        ),
        ("all:\n  vars:\n    x: 1\n", f"all:\n  hosts:\n    {LINE}\n  vars:\n    x: 1\n"),
        ("gpu:\n  hosts:\n    a:\n", f"gpu:\n  hosts:\n    a:\n{NEW}"),
        (
            "all:\n    hosts:\n        a:\n            k: |\n                1\n                2\n"
            "\n    vars: {}\n",
            "all:\n    hosts:\n        a:\n            k: |\n                1\n                2\n"
            f"\n        {LINE}\n    vars: {{}}\n",
        ),
        ("all:\r\n  hosts:\r\n    a:\r\n", f"all:\r\n  hosts:\r\n    a:\r\n    {LINE}\r\n"),
        (
            "all:\n  hosts:\n    a: &x {p: 1}\n    b: *x\n",
            f"all:\n  hosts:\n    a: &x {{p: 1}}\n    b: *x\n    {LINE}\n",
        ),
        (
            "all:\n  hosts:\n    a:\n      k: !vault |\n        $ANSIBLE_VAULT;1.1;AES256\n        30\n",
            "all:\n  hosts:\n    a:\n      k: !vault |\n        $ANSIBLE_VAULT;1.1;AES256\n        30\n"
            f"    {LINE}\n",
        ),
    ],
)
def test_extended(before: str, after: str) -> None:
    assert extended(FILE, before, "box1", REACH) == after


def test_a_new_list() -> None:
    text = extended(FILE, "", "box1", REACH)
    assert text.startswith("# ")
    assert yaml.safe_load(text) == {"all": {"hosts": {"box1": REACH}}}


@pytest.mark.parametrize(
    "text",
    [
        "all:\n  hosts: {a: }\n",
        "all: {hosts: {a: }}\n",
        "{all: {hosts: {a: }}}\n",
        "- all\n",
        "all: null\n",
        "all:\n  hosts: ~\n",
        "plugin: constructed\n",
        "$ANSIBLE_VAULT;1.1;AES256\n3031\n",
        "all: &all\n  hosts:\n    a:\nother: *all\n",
        "all: *nowhere\n",
        "all:\n  hosts: [\n",
        "all:\n  hosts:\n    a:\n---\nall:\n  hosts:\n    b:\n",
        "all:\n  hosts:\n    a:  # x\x0c y\n",
        "all: text\n",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(UserError) as error:
        extended(FILE, text, "box1", REACH)
    assert "Traceback" not in str(error.value)
    assert "hosts.yml" in str(error.value)


NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]", fullmatch=True)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=4,
)
GROUP = st.fixed_dictionaries(
    {},
    optional={
        "vars": st.dictionaries(NAMES, VALUES, max_size=2),
        "hosts": st.dictionaries(NAMES, st.none() | st.dictionaries(NAMES, VALUES, max_size=2), max_size=3),
    },
)


@settings(max_examples=60)
@given(st.dictionaries(NAMES | st.just("all"), GROUP, max_size=3), st.sampled_from([2, 4]))
def test_whatever_the_list_says_it_goes_on_saying(groups: dict[str, Any], indent: int) -> None:
    text = yaml.safe_dump(groups, indent=indent, sort_keys=False) if groups else "# none\n"
    try:
        made = yaml.safe_load(extended(FILE, text, "new-box", REACH))
    except UserError:
        assert "{}" in text or "null" in text  # flow forms of empty mappings are not touched
        return
    assert made["all"]["hosts"].pop("new-box") == REACH
    rest = {name: group for name, group in made.items() if name != "all" or name in groups}
    if "all" in rest and "hosts" not in (groups["all"] or {}):
        rest["all"] = {key: value for key, value in made["all"].items() if key != "hosts"}
    assert rest == groups


@settings(max_examples=200)
@given(
    VALUES | st.text() | st.sampled_from(["yes", "1e3", "0x1f", "12:30:00", "null", "~", "580", "1_000", "="])
)
def test_flow_reads_back(value: Any) -> None:
    text = flow({"a": value, "b": [value]})
    assert "\n" not in text
    assert yaml.safe_load(text) == {"a": value, "b": [value]}
