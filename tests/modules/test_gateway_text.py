"""What a gateway's configuration is made of: every name one word, every key in one place, nothing open."""

import re
import shlex

import pytest
from ansible.module_utils import gateway_text as text
from ansible.module_utils import gateway_words as words
from hypothesis import given
from hypothesis import strategies as st

KEYS = {"qwen/box1": "key-of-box1-0001", "qwen/box2": "key-of-box2-0002", "other/box1": "key-of-other-003"}
NAMES = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1)


def settings(**changed):
    servers = [{"box": f"box{n}", "address": f"192.0.2.{n}", "port": 8000} for n in (1, 2)]
    return {
        "bind": "0.0.0.0",
        "port": 8443,
        "paths": [],
        "affinity": "none",
        "body_bytes": 1 << 20,
        "timeout_s": 3600,
        "allow_from": [],
        "models": [{"name": "qwen", "servers": servers}, {"name": "other", "servers": servers[:1]}],
        "clients": [{"name": "alice", "sha256": "a" * 64, "requests_per_minute": 60}],
        **changed,
    }


def config(keys=KEYS, **changed):
    return text.files(settings(**changed), keys, "PEM")[text.CONFIG]


def section(made, head):
    """The lines of one section, without their indent."""
    _, _, rest = made.partition(f"\n{head}\n")
    assert rest, f"{head} is not in\n{made}"
    return [line.strip() for line in rest.split("\n\n")[0].splitlines()]


def test_each_engine_gets_its_own_key_and_nobody_else_sees_one():
    made = config()
    for name, key in KEYS.items():
        [line] = [line for line in made.splitlines() if key in line]
        assert line.strip() == f'http-request set-header Authorization "Bearer {key}"'
        model, _, box = name.partition("/")
        inner = section(made, "listen " + words.ident("box", f"{model}@{box}"))
        assert line.strip() in inner
        assert f"bind unix@{words.socket_of(model, box)} mode 600 user haproxy" in inner


def test_a_box_whose_key_is_not_known_is_left_out():
    made = config(keys={"qwen/box2": KEYS["qwen/box2"]})
    assert [line for line in section(made, "backend model.qwen") if line.startswith("server ")] == [
        f"server box2 unix@{words.socket_of('qwen', 'box2')}"
    ]
    assert not [line for line in section(made, "backend model.other") if line.startswith("server ")]


def test_what_may_be_sent_again_is_only_what_nothing_was_answered_of():
    lines = section(config(), "backend model.qwen")
    [retried] = [line for line in lines if line.startswith("retry-on ")]
    assert retried.split()[1:] == ["conn-failure", "empty-response", "502", "503"]
    assert "option redispatch 1" in lines


def test_a_session_stays_with_a_box_where_that_is_asked_for():
    assert "balance leastconn" in section(config(), "backend model.qwen")
    assert "balance hash var(txn.session)" in section(config(affinity="session"), "backend model.qwen")


def test_clients_are_kept_by_their_hash():
    made = text.files(settings(), KEYS, "PEM")
    assert made[text.CLIENTS] == f"{'a' * 64} alice\n"
    assert made[text.LIMITS] == "alice 60\n"


def test_a_source_that_is_not_declared_is_not_heard():
    [line] = [
        one
        for one in section(config(allow_from=["192.0.2.0/24"]), "frontend clients")
        if "tcp-request" in one
    ]
    assert line == "tcp-request connection reject unless { src 127.0.0.0/8 ::1 192.0.2.0/24 }"
    assert "tcp-request" not in config()


@pytest.mark.parametrize(
    ("path", "passes"),
    [
        ("/v1/chat/completions", True),
        ("/v1/models/org/name-1.5:x", True),
        ("/v1/", False),
        ("/metrics", False),
        ("/invocations", False),
        ("/v1/%2e%2e/metrics", False),
        ("/v10/x", False),
        ("/x/v1/y", False),
    ],
)
def test_paths(path, passes):
    [line] = [one for one in section(config(), "frontend clients") if one.startswith("acl open path_reg")]
    assert bool(re.search(line.split()[-1], path)) is passes


def test_one_model_alone_is_meant_where_a_body_names_none():
    [one] = settings()["models"][:1]
    alone, several = section(config(models=[one]), "frontend clients"), section(config(), "frontend clients")
    assert "default_backend model.qwen" in alone
    assert any(line.endswith("if !known { var(txn.model) -m found }") for line in alone)
    assert not [line for line in several if line.startswith("default_backend")]
    assert any(line.endswith('model_not_found\\"}}" if !known') for line in several)


@given(NAMES)
def test_a_quoted_word_is_read_back_as_it_was(name):
    # Within double quotes a shell reads a backslash as HAProxy does, before these three and no others.
    quoted = words.quote(name)
    assert "".join(shlex.split(quoted.replace("\\$", "$"))) == name
    assert not re.search(r"(?<!\\)(?:\\\\)*\$", quoted)


@given(NAMES, NAMES)
def test_names_of_sections_are_words_and_do_not_meet(one, other):
    made = words.ident("model", one)
    assert re.fullmatch(r"[A-Za-z0-9_.:-]{1,60}", made)
    assert (made == words.ident("model", other)) is (one == other)


@given(NAMES, NAMES, NAMES)
def test_no_name_or_key_adds_a_line(model, box, key):
    def lines(model, box, key):
        made = config(
            models=[{"name": model, "servers": [{"box": box, "address": "192.0.2.1", "port": 8000}]}],
            keys={text.key_name(model, box): key},
        )
        return [line.split(None, 1)[:1] for line in made.split("\n")]

    assert lines(model, box, key) == lines("qwen", "box1", "key")


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "a\0b", "a\x7fb"])
def test_control_characters_are_refused(bad):
    server = {"box": "box1", "address": "192.0.2.1", "port": 8000}
    with pytest.raises(ValueError, match="control"):
        config(models=[{"name": bad, "servers": [server]}])
    with pytest.raises(ValueError, match="control"):
        config(keys={**KEYS, "qwen/box1": bad})


@pytest.mark.parametrize(
    "changed",
    [
        {"bind": "0.0.0.0 ssl"},
        {"paths": ["/x y"]},
        {"paths": ["/x\n"]},
        {"allow_from": ["192.0.2.0/24 }"]},
        {"clients": [{"name": "a b", "sha256": "a" * 64, "requests_per_minute": 0}]},
        {"clients": [{"name": "a", "sha256": "a key", "requests_per_minute": 0}]},
        {"models": [{"name": "m", "servers": [{"box": "box1", "address": "x y", "port": 1}]}]},
    ],
)
def test_what_is_none_is_refused(changed):
    with pytest.raises(ValueError, match=r".+"):
        config(keys={**KEYS, "m/box1": "k"}, **changed)


def test_the_same_declaration_is_the_same_directory_and_another_is_another():
    one, files = text.placed(text.files(settings(), KEYS, "PEM"), "/etc/x")
    assert f"ssl crt /etc/x/{one}/server.pem" in files[text.CONFIG]
    assert f"description {one}" in files[text.CONFIG]
    assert not any("\0" in content for content in files.values())
    assert text.placed(text.files(settings(), KEYS, "PEM"), "/etc/x") == (one, files)
    for changed in (
        text.files(settings(), {**KEYS, "qwen/box1": "another-key-00001"}, "PEM"),
        text.files(settings(), KEYS, "another"),
        text.files(settings(clients=[]), KEYS, "PEM"),
    ):
        assert text.placed(changed, "/etc/x")[0] != one
    assert re.fullmatch("[0-9a-f]{16}", one)
