"""The container's command line and the unit around it."""

import fcntl
import shlex
import subprocess

import pytest
from ansible.module_utils import engine_parse
from ansible.module_utils.engine_unit import END, docker_run, refusals, unit_text

RELEASE = "0123456789ab"
STATE = {
    "template": 1,
    "name": "qwen",
    "engine": "vllm",
    "image_digest": "sha256:" + "a" * 64,
    "reference": "vllm/vllm-openai@sha256:" + "a" * 64,
    "revision": "b" * 40,
    "quantize": None,
    "model_directory": "/var/lib/boxwright/models/Qwen--Q/" + "b" * 40,
    "command": [
        "vllm",
        "serve",
        "/model",
        "--speculative-config",
        '{"method": "mtp"}',
        "--x",
        "50% of $HOME",
    ],
    "env": {"NCCL_P2P_DISABLE": "1"},
    "access": "cdi",
    "devices": ["GPU-1", "GPU-2"],
    "bind": "127.0.0.1",
    "port": 8001,
    "shm_size": "8g",
    "cache_directory": "/var/lib/boxwright/cache/qwen",
    "key_file": "/etc/boxwright/engines/qwen/api-key",
    "stop_timeout_s": 30,
    "restart_limit": 5,
    "restart_window_s": 1800,
}


def argv(**changes):
    return [word for group in docker_run({**STATE, **changes}, RELEASE) for word in group]


def after(words, option):
    return [words[place + 1] for place, word in enumerate(words) if word == option]


def test_hardened():
    words = argv()
    assert {"--read-only", "--rm", "--init"} <= set(words)
    assert after(words, "--cap-drop") == ["ALL"]
    assert after(words, "--security-opt") == ["no-new-privileges"]
    assert after(words, "--pull") == ["never"]
    assert not {"--privileged", "--ipc", "--restart", "--runtime"} & set(words)


def test_it_runs_as_the_images_own_user_where_there_is_one():
    assert after(argv(user="2000:0"), "--user") == ["2000:0"]
    assert "--user" not in argv()


def test_the_image_is_named_by_content_and_the_command_is_the_plans_to_the_letter():
    words = argv()
    place = words.index(STATE["reference"])
    assert words[place - 2 : place] == ["--entrypoint", "sh"]
    assert words[place + 1 : place + 4] == [
        "-c",
        'VLLM_API_KEY=$(cat /run/boxwright/api-key) && export VLLM_API_KEY && exec "$@"',
        "boxwright",
    ]
    assert words[place + 4 :] == STATE["command"]


def test_weights_and_key_cannot_be_written():
    model, cache, key = after(argv(), "--mount")
    assert model == f"type=bind,source={STATE['model_directory']},target=/model,readonly"
    assert cache == "type=bind,source=/var/lib/boxwright/cache/qwen,target=/cache"
    assert (
        key == "type=bind,source=/etc/boxwright/engines/qwen/api-key,target=/run/boxwright/api-key,readonly"
    )


def test_a_draft_model_lies_beside_the_model_and_cannot_be_written():
    place = "/var/lib/boxwright/models/o--d/" + "c" * 40
    assert (
        after(argv(drafter_directory=place), "--mount")[1]
        == f"type=bind,source={place},target=/drafter,readonly"
    )
    assert not any("/drafter" in word for word in argv())


def test_a_comma_in_a_path_is_quoted_as_docker_reads_it():
    assert after(argv(model_directory='/models/a,b "c"'), "--mount")[0] == (
        'type=bind,"source=/models/a,b ""c""",target=/model,readonly'
    )


@pytest.mark.parametrize(
    ("access", "devices", "option", "values"),
    [
        ("cdi", ["GPU-1", "GPU-2"], "--device", ["nvidia.com/gpu=GPU-1", "nvidia.com/gpu=GPU-2"]),
        ("cdi", ["0"], "--device", ["nvidia.com/gpu=0"]),
        ("gpus", ["GPU-1", "GPU-2"], "--gpus", ['"device=GPU-1,GPU-2"']),
        ("none", [], "--device", []),
    ],
)
def test_cards(access, devices, option, values):
    words = argv(access=access, devices=devices)
    assert after(words, option) == values
    assert not {"--device", "--gpus"} - {option} & set(words)


@pytest.mark.parametrize(
    ("bind", "published"),
    [("127.0.0.1", "127.0.0.1:8001:8000"), ("0.0.0.0", "0.0.0.0:8001:8000"), ("::1", "[::1]:8001:8000")],
)
def test_only_the_declared_address_is_published(bind, published):
    assert after(argv(bind=bind), "--publish") == [published]


@pytest.mark.parametrize("access", ["cdi", "gpus", "none"])
def test_where_docker_confines_by_selinux_the_engine_is_let_out(access):
    """Its cards and its model have no label that a confined container may use."""
    assert after(argv(access=access, selinux=True), "--security-opt") == [
        "no-new-privileges",
        "label=disable",
    ]
    words = engine_parse.command({**STATE, "access": access, "selinux": True}, "pass")
    assert after(words, "--security-opt") == ["no-new-privileges", "label=disable"]


def test_environment():
    assert sorted(after(argv(env={"HF_HUB_OFFLINE": "0", "A": "1"}), "--env")) == [
        "A=1",
        "DO_NOT_TRACK=1",
        "HF_HUB_OFFLINE=0",
        "HOME=/cache",
        "VLLM_CACHE_ROOT=/cache/vllm",
        "VLLM_NO_USAGE_STATS=1",
    ]


def settings(text):
    joined = text.replace("\\\n", " ")
    return [
        line.partition("=")[::2] for line in joined.splitlines() if "=" in line and not line.startswith("#")
    ]


def test_the_unit_restarts_and_gives_up_and_stops():
    found = settings(unit_text(STATE, RELEASE))
    values = dict(found)
    assert values["Restart"] == "always"
    assert (values["StartLimitIntervalSec"], values["StartLimitBurst"]) == ("1800", "5")
    assert values["Requires"] == "docker.service"
    assert {"docker.service", "nvidia-persistenced.service", "boxwright-gpu-tuning.service"} <= set(
        values["After"].split()
    )
    assert values["ExecStop"] == "-/usr/bin/docker stop --time 30 boxwright-qwen"
    assert int(values["TimeoutStopSec"]) > 30
    assert values["SyslogIdentifier"] == "boxwright-qwen"


def test_the_unit_waits_for_the_cards_if_it_needs_any():
    before = [value for key, value in settings(unit_text(STATE, RELEASE)) if key == "ExecStartPre"]
    assert before[0] == "-/usr/bin/docker rm --force boxwright-qwen"
    assert "/dev/nvidia-uvm" in before[1]
    without = unit_text({**STATE, "access": "none", "devices": []}, RELEASE)
    assert len([key for key, _ in settings(without) if key == "ExecStartPre"]) == 1


def test_the_units_command_is_the_containers():
    # shlex knows quotes and escapes as systemd does, as far as they stand here.
    line = dict(settings(unit_text(STATE, RELEASE)))["ExecStart"]
    assert [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line)] == argv()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"env": {"VLLM_API_KEY": "x"}}, "declare api_key"),
        ({"env": {"HF_TOKEN": "x"}}, "HF_TOKEN looks like a secret"),
        ({"env": {"DB_PASSWORD": "x"}}, "DB_PASSWORD looks like a secret"),
        ({"env": {"A B": "x"}}, "no name of an environment variable"),
        ({"env": {"A=B": "x"}}, "no name of an environment variable"),
        ({"command": ["vllm", "serve", "/model", "--api-key", "x"]}, "declare api_key"),
        ({"command": ["vllm", "serve", "/model", "--api-key=x"]}, "declare api_key"),
        ({"engine": "other"}, "how engine other gets its key"),
    ],
)
def test_secrets_are_kept_out(change, said):
    found = refusals({**STATE, **change})
    assert len(found) == 1
    assert said in found[0]
    assert "x" not in found[0].split("declare")[0].split() or "A B" in found[0]


@pytest.mark.parametrize("env", [{"TOKENIZERS_PARALLELISM": "false"}, {"VLLM_KEYS_SHOWN": "1"}, {"_X": "1"}])
def test_other_variables_are_taken(env):
    assert refusals({**STATE, "env": env}) == []


def test_a_line_break_is_refused():
    with pytest.raises(ValueError, match="line break"):
        unit_text({**STATE, "command": ["vllm", "a\nExecStart=/bin/evil"]}, RELEASE)


SGLANG = {
    "engine": "sglang",
    "reference": "lmsysorg/sglang@sha256:" + "a" * 64,
    "command": ["python3", "-m", "sglang.launch_server", "--model-path", "/model", "--port", "8000"],
    "runtime": {"key": {"option": "api-key", "file_option": "--config"}, "env": {}},
}


def test_an_engine_without_a_variable_for_its_key_gets_a_file_of_options():
    words = argv(**SGLANG)
    place = words.index(SGLANG["reference"])
    assert words[place - 2 : place] == ["--entrypoint", "sh"]
    assert words[place + 4 :] == SGLANG["command"]
    assert not [word for word in words if "VLLM" in word]


@pytest.mark.parametrize(
    "key", ["sk-plain", "with'quote", "with\"both'", "with\\back&slash$HOME`id`", "true", "1e3"]
)
def test_the_wrapper_hands_over_any_key_as_the_option_that_it_is(key, tmp_path):
    """The real shell runs the real wrapper; what it starts reads the file as SGLang does."""
    yaml = pytest.importorskip("yaml")
    key_file, options = tmp_path / "key", tmp_path / "options.yml"
    key_file.write_text(key + "\n")
    words = argv(**SGLANG)
    script = words[words.index("-c") + 1]
    script = script.replace("/run/boxwright/api-key", str(key_file))
    script = script.replace("/tmp/boxwright-options.yml", str(options))
    done = subprocess.run(
        ["sh", "-c", script, "boxwright", "printf", "%s|"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"--config|{options}|"
    assert yaml.safe_load(options.read_text()) == {"api-key": key}
    assert options.stat().st_mode & 0o077 == 0


def test_a_release_without_a_word_of_its_runtime_is_run_as_before():
    said = {
        "key": {"variable": "VLLM_API_KEY"},
        "env": {"VLLM_CACHE_ROOT": "/cache/vllm", "VLLM_NO_USAGE_STATS": "1"},
    }
    assert argv() == argv(runtime=said)


def test_an_engine_whose_way_to_a_key_is_not_known_is_refused():
    assert (
        "how engine x gets its key"
        in refusals({**STATE, "engine": "x", "runtime": {"key": {}, "env": {}}})[0]
    )


GUARD = {"option": "--middleware", "digest": "d", "directory": "/var/lib/boxwright/releases/qwen", "open": []}


def test_a_guard_stands_in_front_of_the_engines_routes():
    words = argv(guard={**GUARD, "open": ["/metrics", "/version"]})
    source = f"/var/lib/boxwright/releases/qwen/{RELEASE}/engine_guard.py"
    assert f"type=bind,source={source},target=/run/boxwright/engine_guard.py,readonly" in words
    assert "BOXWRIGHT_OPEN_PATHS=/metrics /version" in words
    wrapper = words[words.index("-c") + 1]
    assert wrapper.endswith('exec "$@" --middleware engine_guard.Guard')
    done = subprocess.run(
        ["sh", "-c", wrapper.replace("$(cat /run/boxwright/api-key)", "k").replace("exec", "exec env;"), "x"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "/opt/own"},
    )
    assert "PYTHONPATH=/run/boxwright:/opt/own" in done.stdout.splitlines()


def test_an_engine_without_a_guard_has_no_word_of_one():
    assert not [word for word in argv() if "guard" in word or "OPEN_PATHS" in word]


def test_nothing_on_the_engines_network_calls_out():
    words = argv(network="boxwright")
    assert after(words, "--network") == ["boxwright"]
    unit = unit_text({**STATE, "network": "boxwright"}, RELEASE)
    made = next(line for line in unit.splitlines() if "network create" in line)
    assert made.startswith("ExecStartPre=/bin/sh -c ")
    assert "enable_ip_masquerade=false" in made
    assert "enable_icc=false" in made


def test_one_that_may_call_out_is_on_dockers_own_network():
    assert "--network" not in argv()
    assert "network create" not in unit_text(STATE, RELEASE)


def test_an_engine_that_is_to_end_takes_no_new_work_and_the_next_one_does():
    closing = STATE["cache_directory"] + "/boxwright-closing"
    working = STATE["cache_directory"] + "/boxwright-working"
    guard = {**GUARD, "closing": True, "drain_seconds": 45}
    lines = unit_text({**STATE, "guard": guard}, RELEASE).splitlines()
    stops = [line for line in lines if line.startswith("ExecStop=")]
    assert stops[0] == f"ExecStop=-/bin/touch {closing}"
    assert stops[1].endswith(f" boxwright-qwen {working} 45 30")
    assert len(stops) == 2
    assert f"TimeoutStopSec={45 + 30 + 30}" in lines
    started = lines.index(f"ExecStartPre=/bin/rm --force {closing} {working}")
    assert started < next(place for place, line in enumerate(lines) if line.startswith("ExecStart="))
    assert "boxwright-closing" not in unit_text({**STATE, "guard": GUARD}, RELEASE)


class Programs:
    """Stand-ins for programs that units call by their paths: what was called; fails: those that do."""

    def __init__(self, place):
        self.place, self.log = place, place / "calls"

    def make(self, name, status=0):
        path = self.place / name
        path.write_text(f'#!/bin/sh\necho {name} "$@" >>{self.log}\nexit {status}\n')
        path.chmod(0o755)
        return path

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path)


@pytest.mark.parametrize(
    ("held", "status", "calls"),
    [
        (False, 0, ["docker kill name"]),
        (True, 0, ["docker stop --time 9 name"]),
        (False, 1, ["docker kill name", "docker stop --time 9 name"]),
    ],
    ids=["its requests are through", "one goes on", "it ended by itself"],
)
def test_what_ends_an_engine(programs, tmp_path, held, status, calls):
    """One whose requests are through is not asked to take itself apart, and Docker is called once."""
    script = END.replace("/usr/bin/docker", str(programs.make("docker", status)))
    with (tmp_path / "working").open("w") as lock:
        if held:
            fcntl.flock(lock, fcntl.LOCK_SH)
        subprocess.run(["sh", "-c", script, "name", lock.name, "1", "9"], check=False)
    assert programs.calls() == calls
