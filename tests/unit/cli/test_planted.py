"""Secrets, names and addresses of every kind, planted in every part of a report, are in none of it."""

import base64
import copy
import json
import re
import uuid

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from boxwright.cli import reporting
from boxwright.cli.ansible_run import HostReport
from boxwright.cli.privacy import anonymizer_for
from boxwright.doctor.anonymous import Anonymizer
from boxwright.facts.parsers.masking import mask
from boxwright.spec.inventory import load

#: What no part of the templates below has, so that it is found where it is left.
RARE = "zqxjk"
SECRETS = st.text(alphabet=RARE + "ZQXJK7", min_size=4, max_size=24).filter(lambda text: text[0] in RARE)
SHORT = st.text(alphabet=RARE + "7", min_size=3, max_size=5).filter(lambda text: not text.isdigit())
NAMES = st.text(alphabet=RARE, min_size=3, max_size=10)
#: Variables by any name that says that their value is a secret, and the spellings of one.
VARIABLES = (
    "MY_KEY", "AWS_SECRET_ACCESS_KEY", "X_PASSWD", "DB_PASS", "PGPASSWORD", "HF_TOKEN", "my_api_key",
    "secretKey",
    "CLIENT_SECRET", "AWS_ACCESS_KEY_ID", "GRAFANA_ADMIN_PASSWORD", "S3_CREDENTIALS", "access_key",
    "BASIC_AUTH",
)  # fmt: skip
SPELLINGS = (
    "{n}={v}", "export {n}={v}", '{n}="{v}"', "{n}='{v} {v}'", "{n}: {v}", '"{n}": "{v}"', "'{n}': '{v}'",
    r'{{\"{n}\": \"{v}\"}}', '["{n}={v}"]', "--env {n}={v}", "-e {n}={v},B=1", "{n} = {v}", "{n}=>{v}",
    '{{"name": "{n}", "value": "{v}"}}', "- name: {n}\n  value: {v}", "b'{n}', b'{v}'", "?{n}={v}&x=1",
)  # fmt: skip
HEADERS = (
    "Authorization: Bearer {v}", "authorization: Basic {v}", 'Authorization: Digest username="{v}", n="{v}"',
    "Cookie: a={v}; b={v}", "Set-Cookie: session={v}; Path=/", "Proxy-Authorization: Basic {v}",
    "X-Api-Key: {v}",
    "-H 'Authorization: Bearer {v}' http://localhost", "(b'authorization', b'Bearer {v}')", "cookie='{v}'",
    '{{"Authorization": "Bearer {v}"}}', "X-Auth-Token: {v}",
)  # fmt: skip
LOGINS = (
    "http://me:{v}@localhost:3128/x", "https://me:{v}@{v}@localhost/x", "http://me:{v}/{v}#@localhost",
    "https://{v}{v}@github.com/x", "ftp://:{v}@localhost",
)  # fmt: skip
TOKENS = (
    "hf_{v}aB3{v}", "sk-{v}{v}{v}", "ghp_{v}{v}{v}{v}{v}", "token=hf_{v}Q1234567", "glpat-{v}{v}{v}{v}{v}{v}",
    "nvapi-{v}{v}{v}{v}{v}{v}",
)  # fmt: skip
USERS = (
    "/home/{v}/models", r"C:\Users\{v}\models", "user {v} logged in", "USER={v} LOGNAME={v}",
    "uid=1000({v}) gid=1000({v})",
    "Accepted publickey for {v} from here", "{v}@localhost", "sudo:  {v} : TTY=pts/0", "/Users/{v}",
    "{v} was here",
)  # fmt: skip
HOSTS = (
    "GET http://{v}.{v}.test/v1 200", "https://{v}:8443/x", "{v}.lan", "{v}.{v}.corp",
    "{v}.eu.compute.internal",
    "connect to host {v}.test port 22: refused", "ws://u@{v}.test:1",
)  # fmt: skip
MAILS = ("{v}@{v}.test", "mailto:{v}.{v}@a.{v}.org", "<{v}+x@{v}.co.uk>", "{v}%40{v}.test")
SERIALS = (
    "Serial Number : {v}1", "serial: {v}12", '"serial": "{v}0123"', "SerialNumber: {v}99", "S/N: {v}99",
    "    Board Serial Number                   : {v}99",
)  # fmt: skip

#: What tells a fault, and must be there to the letter.
STAYS = """cudnn 8.9.7.29 and nvidia-cudnn-cu12==8.9.7.29, CUDA 12.8.0.1, libnccl2 2.27.5.1-1+cuda12.9
nvidia-cublas-cu12 12.8.4.1 over cublas 12.4.5.8; TensorRT version: 10.3.0.26, curand-cu12 10.3.9.90
10:20:30 2025-11-30T10:20:30.123Z 06:24:34 [core.py:1] time=10:20:30 PCI:0000:01:00.0 took 1:02:03
driver 580.105.08, vLLM 0.32.0, Docker 26.1.5+dfsg1-9+deb13u1, 97 %, 29800 MiB, 575.00 W, 2100 MHz, 16.7 GiB
max_num_batched_tokens=8192 num_speculative_tokens: 3, max token: 4096, time per output token: 12.3 ms
eos_token='</s>' pad_token_id=0 cache_key: layers.0, KeyError: 'model.layers.0.weight', hf_overrides={}
hf_transfer is not installed; use_hf_hub_download; the token budget of the scheduler; secret sauce, keys: 3
c10::Error in std::vector, torch::jit::a, dead code, /var/lib/boxwright/models/RedHatAI--Qwen3.8-27B-INT4
127.0.0.1:8000, 0.0.0.0, ::1 and http://localhost:8000/v1 https://huggingface.co/Qwen https://github.com/vllm-project
sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef vllm/vllm-openai:v0.32.0 Qwen@main
password: required, token is invalid, api_key: null, --api-key is missing, serial: N/A, serial console
Xid (PCI:0000:01:00): 79, pid=1234, GPU has fallen off the bus.
ValueError: No available memory for the blocks"""

INVENTORY = {
    "ansible_host": "box.{host}.test",
    "ansible_user": "{user}",
    "ansible_become_password": "{short}",
    "box_proxy": "http://{user}:{short}@{short}@proxy.{host}.test:3128",
    "model_weights_bucket": {
        "url": "https://s3.{host}.test/b",
        "access_key": "{known}",
        "secret_key": "{known}S",
    },
    "box_deployments": [
        {"name": "qwen", "model": "m", "env": {"MY_KEY": "{known}E", "X_PASSWD": "{short}w"}}
    ],
}


def filled(value, names):
    """A template with names in its texts."""
    if isinstance(value, dict):
        return {key: filled(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, names) for one in value]
    return (
        re.sub(r"\{(\w+)\}", lambda found: names[found.group(1)], value) if isinstance(value, str) else value
    )


def planted(value, text):
    """A value with a text behind each of its own."""
    if isinstance(value, dict):
        return {key: planted(one, text) for key, one in value.items()}
    if isinstance(value, list):
        return [planted(one, text) for one in value]
    return f"{value}\n{text}" if isinstance(value, str) else value


LOG = {"rc": 0, "text": "1764400000.1 box docker[9]: ValueError: No available memory for the cache blocks."}
RAW = {
    "format": 1,
    "kernel": LOG,
    "docker": LOG,
    "previous_boot": LOG,
    "smi": LOG,
    "throttle": LOG,
    "filesystems": [{"path": "/", "size": 9, "available": 5}],
    "deployments": [
        {
            "name": "qwen",
            "journal": LOG,
            "unit": {"load": "loaded", "active": "failed", "ending": "exit status 1"},
            "container": {"status": "exited", "message": "x"},
            "failure": {"release": "r0", "what": "x", "log": "y"},
            "metrics": "vllm:num_requests_running 1",
            "releases": [
                {"id": "r1", "link": "current", "state": {"command": ["serve"]}, "plan": {}, "unit": "u"}
            ],
        }
    ],
}
PLAN = {
    "facts": {"os": {"name": "Debian"}, "cards": [{"name": "RTX 5090"}], "packages": ["cuda"]},
    "changes": [{"text": "x"}],
    "gates": [{"id": "x", "message": "y"}],
    "advice": [],
    "deployments": [{"name": "qwen", "command": ["serve"]}],
}
BENCH = [{"deployment": "qwen", "runs": [{"id": "b1"}], "found": {"last": [{"id": "b1", "note": "x"}]}}]


def bundle(tmp_path, variables, text):
    """The report's text of a box in all whose parts a text was planted."""
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"thebox": variables}}}))
    results = {
        "diagnosis": [{"raw": planted(copy.deepcopy(RAW), text)}],
        "plan": [{"ansible_facts": {"box_plan": planted(copy.deepcopy(PLAN), text)}}],
        "bench_runs": [{"results": planted(copy.deepcopy(BENCH), text)}],
    }
    boxes = {"thebox": reporting.box(HostReport("thebox", results=results))}
    made = reporting.bundled(boxes, anonymizer_for(load([tmp_path]), ["thebox"], boxes))
    [box] = made["boxes"].values()
    assert [part for part in reporting.PARTS if not box[part]] == []
    return json.dumps(made, ensure_ascii=False)


@settings(
    max_examples=8,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_nothing_planted_is_in_any_part(tmp_path, data):
    """One value of each kind, in each of its spellings, at once: what is left names its kind."""
    value = {kind: data.draw(strategy, label=kind) for kind, strategy in KINDS.items()}
    lines = [
        *(form.format(n=name, v=value["variable"]) for name in VARIABLES for form in SPELLINGS),
        *(form.format(v=value[kind]) for kind, forms in FORMS.items() for form in forms),
        "the secrets {known} {known}S {known}E, {short}, ({short}w)".format(**value),
        "-----BEGIN RSA PRIVATE KEY-----\n{key}\n{key}\n-----END RSA PRIVATE KEY-----".format(**value),
        jwt(value["jwt"]),
    ]
    text = bundle(tmp_path, filled(INVENTORY, value), "\n".join(lines))
    left = {kind for kind, one in value.items() if one.lower() in text.lower()}
    lines = {line for line in text.split("\\n") if any(value[kind].lower() in line.lower() for kind in left)}
    assert not left, sorted(lines, key=len)[:10]
    assert jwt(value["jwt"]).partition(".")[2] not in text


KINDS = {
    "variable": SECRETS, "header": SECRETS, "login": SECRETS, "token": SECRETS, "known": SECRETS,
    "jwt": SECRETS, "short": SHORT, "user": NAMES, "host": NAMES, "mail": NAMES, "serial": SECRETS,
    "key": SECRETS,
}  # fmt: skip
FORMS = {
    "header": HEADERS, "login": LOGINS, "token": TOKENS, "user": USERS, "host": HOSTS, "mail": MAILS,
    "serial": SERIALS,
}  # fmt: skip


def jwt(secret):
    parts = [json.dumps(one).encode() for one in ({"alg": "HS256"}, {"sub": secret})] + [secret.encode()]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


@pytest.mark.parametrize(
    "spelt",
    ["::ffff:198.51.100.7", "0000:0000:0000:0000:0000:ffff:198.51.100.7", "0:0:0:0:0:ffff:12.3.44.5",
     "::FFFF:198.51.100.7", "::ffff:c633:6407", "64:ff9b::198.51.100.7", "[::ffff:12.3.44.5]:8000"],
)  # fmt: skip
def test_no_address_that_ends_in_four_numbers(spelt):
    told = Anonymizer().text(f"from {spelt} came")
    assert re.fullmatch(r"from \[?(::ffff:)?address-1\]?(:8000)? came", told), told


def somebodys(address):
    within = address.ipv4_mapped or address
    return not (within.is_loopback or within.is_unspecified or str(within).startswith("255."))


@settings(max_examples=60, deadline=None)
@given(
    st.ip_addresses(v=6).filter(somebodys),
    st.binary(min_size=6, max_size=6).filter(lambda mac: len(set(mac)) > 2),
    st.uuids(),
)
def test_no_address_in_any_spelling_and_no_number_of_a_card(address, mac, number):
    pairs = [f"{byte:02x}" for byte in mac]
    fours = [mac.hex()[at : at + 4] for at in (0, 4, 8)]
    spelt = [
        str(address), address.exploded, str(address).upper(), address.exploded.upper(), f"[{address}]:8000",
        f"http://[{address}]/x", f"{address}%eth0", f"{address}/64", f"{address}%25eth0",
        f"peer:{address} up",
        str(address).replace(":", "%3A"), f"({address})", f"'{address}',", address.reverse_pointer,
        ":".join(pairs), "-".join(pairs).upper(), ":".join(pairs).upper(), f"mac={':'.join(pairs)}",
        f"GPU-{number}", f"MIG-GPU-{number}/1/2", f"UUID: {str(number).upper()}", f"MIG-{number}",
    ]  # fmt: skip
    if any(sign.isalpha() for sign in mac.hex()):
        spelt.append(".".join(fours))
    anonymizer = Anonymizer()
    needles = {str(address), address.exploded, ":".join(pairs), "-".join(pairs), ".".join(fours), str(number)}
    needles |= {str(address).replace(":", "%3a"), address.reverse_pointer}
    for text in spelt:
        told = anonymizer.text(f"a {text} b").lower()
        assert not [needle for needle in needles if needle in told], (text, told)
    assert {kind for kind, count in anonymizer.replaced.items() if count} == {"address", "card", "id", "host"}


@pytest.mark.parametrize("address", ["192.0.2.17", "3.120.4.9", "8.8.4.4", "12.8.0.1"])
@pytest.mark.parametrize(
    "form",
    ["from {} port 22", "http://{}/x", "{}:8000", "at {}", "inet {}/24", "ssh {}", "root@{}", "{} - - [x"],
)
def test_an_address_that_could_be_a_version_goes_where_it_stands_as_one(form, address):
    assert address not in Anonymizer().text(form.format(address))


def test_a_boxs_own_address_goes_whatever_it_looks_like():
    assert Anonymizer(addresses=["8.9.7.29"]).text("x 8.9.7.29 y") == "x address-1 y"


def test_a_boxs_own_address_is_known_by_its_field_and_a_version_by_its_own(tmp_path):
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"b": {"ansible_host": "8.8.7.7"}}}}))
    log = "9.9.7.29 8.9.7.29 8.8.7.7"
    boxes = {"b": {"facts": {"addresses": ["9.9.7.29/24"], "cudnn": "8.9.7.29", "log": log}}}
    anonymizer = anonymizer_for(load([tmp_path]), ["b"], boxes)
    told = anonymizer.value(boxes["b"])["facts"]
    assert (told["addresses"], told["cudnn"]) == (["address-1/24"], "8.9.7.29")
    assert told["log"] == "address-1 8.9.7.29 address-2"


@pytest.mark.parametrize("line", STAYS.splitlines())
def test_what_tells_a_fault_stays_to_the_letter(line):
    assert mask(line) == line
    assert Anonymizer(users=["al"], hosts=["box"], secrets=["abc"]).text(line) == line


def test_and_it_stays_in_every_part(tmp_path):
    text = bundle(tmp_path, filled(INVENTORY, dict.fromkeys(KINDS, "zqxj77")), STAYS)
    expected = json.dumps(STAYS, ensure_ascii=False)[1:-1]
    assert text.count(expected) > 20


@pytest.mark.parametrize("user", ["al", "jo", "x", "it", "id"])
@pytest.mark.parametrize("form", USERS[:-1])
def test_a_short_name_goes_where_a_user_stands(form, user):
    told = Anonymizer(users=[user]).text(form.format(v=user))
    assert "user-1" in told
    assert not re.search(rf"(?<![\w])(?<![ug]){user}(?!\w|=)", told), told


def test_a_short_name_that_is_no_word_goes_everywhere_and_one_that_is_stays_in_sentences():
    anonymizer = Anonymizer(users=["al", "it", "x"], hosts=["g1"])
    assert anonymizer.text("al ran it on g1, x times") == "user-1 ran it on host-1, x times"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("password", "a", "***"),
        ("MY_KEY", "b", "***"),
        ("api_key", None, None),
        ("has_token", True, True),
        ("tokens", 3, 3),
        ("api_key_file", "/etc/boxwright/engines/q/api-key", "/etc/boxwright/engines/q/api-key"),
        ("cudnn", "8.9.7.29", "8.9.7.29"),
        ("version", "12.80.0.1", "12.80.0.1"),
        ("address", "8.9.7.29", "address-1"),
        ("serial", "1320123456789", "serial-1"),
        ("eos_token", "</s>", "</s>"),
        ("bos_token_id", 1, 1),
        ("pad_token_id", "2", "2"),
        ("daemon_keys", ["data-root"], ["data-root"]),
        ("api_keys", {"qwen": "abc"}, {"qwen": "***"}),
    ],
)
def test_the_name_of_a_field_tells(name, value, told):
    assert Anonymizer().value({name: value}) == {name: told}


def test_a_variable_of_kubernetes_and_a_key_over_several_lines():
    value = {"env": [{"name": "X_PASSWD", "value": "ab"}, {"name": "A", "value": "b"}]}
    assert Anonymizer().value(value)["env"] == [
        {"name": "X_PASSWD", "value": "***"},
        {"name": "A", "value": "b"},
    ]
    lines = ["begin", "-----BEGIN RSA PRIVATE KEY-----", "MIIEabc", "-----END RSA PRIVATE KEY-----", "end"]
    assert Anonymizer().value({"log": lines}) == {"log": ["begin", "***", "end"]}


def test_numbers_of_cards_have_words_of_their_own():
    one, other = (f"GPU-{uuid.UUID(int=number)}" for number in (1 << 90, 1 << 91))
    assert Anonymizer().text(f"{one} {other} {one}") == "card-1 card-2 card-1"
