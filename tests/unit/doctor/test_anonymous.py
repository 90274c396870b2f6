"""What is sent on tells nobody who and where it is about, and still tells what is wrong."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.doctor.anonymous import Anonymizer
from boxwright.doctor.names import (
    hosts_of_journals,
    hosts_of_ssh,
    secrets_of,
    short_names,
    users_of_homes,
)


@pytest.fixture
def anonymizer():
    return Anonymizer(
        users=["alice", "root"], hosts=["box1", "box1.example.org"], secrets=["s3cret-key-0001"]
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("key s3cret-key-0001 here", "key *** here"),
        ("Authorization: Bearer abcdefghijk", "Authorization: Bearer ***"),
        ("token hf_abcdefghijklmnop", "token ***"),
        ("http://alice:hunter22@proxy:3128/x", "http://***@host-3:3128/x"),
        ("192.0.2.17:8000 and 192.0.2.17", "address-1:8000 and address-1"),
        ("from 2001:db8::17 port 22", "from address-1 port 22"),
        ("fe80::1%eth0", "address-1"),
        ("link 52:54:00:aa:bb:cc up", "link address-1 up"),
        ("/home/bob/models and /home/bob", "/home/user-2/models and /home/user-2"),
        ("alice@box1.example.org logged in", "mail-1 logged in"),
        ("user alice on box1", "user user-1 on host-1"),
        ("box1.example.org", "host-2"),
        ("BOX1 and Box1.Example.Org", "host-1 and host-2"),
        ("Alice@BOX1.example.org, alice@box1.example.org", "mail-1, mail-1"),
        ("peer:2001:db8::17 and ::ffff:192.0.2.17", "peer:address-1 and ::ffff:address-2"),
        ("fe80::1%eth0.100", "address-1"),
        (r"a\n192.0.2.17\nbox1\t2001:db8::17", r"a\naddress-1\nhost-1\taddress-2"),
        ("%2Fhome%2Falice", "%2Fhome%2Fuser-1"),
        ("peer_192.0.2.17_x", "peer_address-1_x"),
        (r"C:\Users\bob\x and C:\\Users\\bob", r"C:\Users\user-2\x and C:\\Users\\user-2"),
        ("carol@192.0.2.17, carol@box1", "user-2@address-1, user-2@host-1"),
        ("ip-192-0-2-17 up", "host-3 up"),
    ],
)
def test_who_and_where_are_replaced(anonymizer, text, told):
    assert anonymizer.text(text) == told


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:8000, 0.0.0.0 and ::1",
        "[::ffff:0:0]:8000 and ::ffff:127.0.0.1",
        "driver 580.105.08, vLLM 0.32.0, Docker 26.1.5+dfsg1-9+deb13u1",
        "Xid (PCI:0000:01:00): 79, pid=1234",
        "06:24:34 [core.py:1] c10::Error in std::vector",
        "/var/lib/boxwright/models/RedHatAI--Qwen3.8-27B-INT4 and /root/x and /home/ubuntu",
        "vllm/vllm-openai@sha256:0123 and Qwen@main",
        "std::chrono::abc and 12:34:56",
        "mailbox1 and box1x are no hosts, alices no user",
    ],
)
def test_what_tells_a_fault_stays(anonymizer, text):
    assert anonymizer.text(text) == text


def test_the_same_thing_has_the_same_word_everywhere(anonymizer):
    value = {"box1": ["10.0.0.5", {"seen from 10.0.0.5": "10.0.0.6"}], "n": 3, "none": None}
    assert anonymizer.value(value) == {
        "host-1": ["address-1", {"seen from address-1": "address-2"}],
        "n": 3,
        "none": None,
    }
    counts = {kind: count for kind, count in anonymizer.replaced.items() if count}
    assert counts == {"address": 2, "user": 1, "host": 2}


def test_hosts_give_themselves_names_in_their_journals():
    text = (
        "1764400000.123 gpu-rig-7 kernel: NVRM: x\n1764400001.5 gpu-rig-7 docker[9]: y\nno journal here: z\n"
    )
    assert hosts_of_journals([text]) == {"gpu-rig-7"}


def test_ssh_names_machines_that_no_inventory_knows():
    texts = [
        "ssh: connect to host gpu7.corp.example port 22: Connection timed out",
        "dave@bastion.corp.example: Permission denied (publickey).",
        "Could not resolve hostname rig9: Name or service not known",
    ]
    assert hosts_of_ssh(texts) == {"gpu7.corp.example", "bastion.corp.example", "rig9"}


def test_machines_call_themselves_by_the_first_part_of_their_names():
    assert short_names(["gpu7.corp.example", "192.0.2.17", "2001:db8::1", "a.example"]) == {"gpu7"}


def test_whose_home_is_named_is_known_everywhere():
    assert users_of_homes(["bob logged in", "/home/bob/x, /home/ubuntu"]) == {"bob"}


def test_what_every_machine_is_called_stays():
    anonymizer = Anonymizer(hosts=["localhost", "localhost.localdomain", "127.0.0.1", "::1"])
    assert anonymizer.text("http://localhost:8000 at 127.0.0.1") == "http://localhost:8000 at 127.0.0.1"


@pytest.mark.parametrize(
    "bad", ["a", "1.", ":", "a:", "a@b.", "-", "_", "/home/", "%2F", "ip-1", "a@host-", "::ffff:"]
)
def test_long_texts_of_any_kind_take_no_long_time(anonymizer, bad):
    began = time.process_time()
    anonymizer.text(bad * (100_000 // len(bad)))
    hosts_of_ssh([bad * (100_000 // len(bad))])
    assert time.process_time() - began < 20


def test_what_is_a_secret_by_its_name_and_what_is_none():
    environment = {"HF_KEY": "env-key-1"}
    named = {
        "model_weights_bucket": {"access_key": "access-1", "secret_key": "secret-1"},
        "box_deployments": [{"env": environment, "tokenizer_mode": "mistral", "key": "plain-1"}],
        "nvidia_driver_repository_key_url": "https://example.org/key",
    }
    assert secrets_of(named) == {"access-1", "secret-1", "env-key-1"}


def test_secrets_of_an_inventory_wherever_they_stand():
    variables = {
        "ansible_become_password": "become-1",
        "box_hub": {"token": "token-22", "endpoint": "https://hub"},
        "box_deployments": [{"name": "q", "api_key": "key-333"}],
        "box_proxy": "http://me:proxy-4444@proxy:3128",
        "ansible_ssh_pass": "ssh-55555",
        "nvidia_driver_branch": "580",
    }
    assert secrets_of(variables) == {"become-1", "token-22", "key-333", "proxy-4444", "ssh-55555"}


WORDS = st.text(alphabet="abcdefghijkmnpqrstuvwxyz0123456789", min_size=8, max_size=16)


def somebodys(ip):
    """Whether an address is one machine's; one of IPv4 within it is as its own (`::ffff:0.0.0.0`)."""
    within = ip.ipv4_mapped or ip
    return not (within.is_loopback or within.is_unspecified or str(within).startswith("255."))


@given(
    WORDS,
    st.ip_addresses(v=6).filter(somebodys),
    st.text(max_size=40),
)
def test_nothing_planted_is_left(secret, address, noise):
    text = f"{noise} {address} {noise} {secret} {noise}"
    told = json.dumps(Anonymizer(secrets=[secret]).value({"x": [text]}))
    assert secret not in told
    assert str(address) not in told.replace("\\", " ")
