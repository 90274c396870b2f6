"""From nothing to an answer on a simulated box, as the README says it; the tests run in this order."""

import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from boxwright.spec.inventory import load

pytestmark = pytest.mark.lab

PROMPT = "Name the capital city of France."


def ask(url, key=None, body=None):
    """One HTTP request; status and text."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(url, headers=headers, data=json.dumps(body).encode() if body else None)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def chat(address, key, **more):
    body = {
        "model": "smollm2",
        "messages": [{"role": "user", "content": PROMPT}],
        "temperature": 0,
        "max_tokens": 24,
    }
    return ask(f"{address}/v1/chat/completions", key, body | more)


def state_of_engine(box):
    """What must not change over a rerun: the container, when it started, and the key."""
    container = box.do("docker", "ps", "--no-trunc", "--format", "{{.ID}} {{.Names}} {{.CreatedAt}}")
    return container, box.do("sha256sum", "/etc/boxwright/engines/smollm2/api-key")


def test_first_run_ends_with_an_answer(first):
    assert "Paris" in re.search(r"answered +(.+)", first.output)[1]
    assert "failed" not in first.output


def test_the_printed_line_works(first):
    line = re.search(r"try +(.+)", first.output)[1]
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=180)
    assert "Paris" in json.loads(done.stdout)["choices"][0]["message"]["content"], done


def test_the_key_is_in_no_output_process_list_unit_or_inspection(first, box, key):
    assert len(key) >= 32
    assert key not in first.output
    assert key not in box.do("ps", "axww", "-o", "args")
    assert key not in box.do("systemctl", "cat", "boxwright-smollm2.service")
    names = box.do("docker", "ps", "--quiet").split()
    assert key not in box.do("docker", "inspect", *names)
    assert key not in box.do("journalctl", "--no-pager", "--quiet")


def test_v1_asks_for_the_key(address, key):
    assert ask(f"{address}/v1/models")[0] == 401
    assert ask(f"{address}/v1/models", "wrong")[0] == 401
    status, text = ask(f"{address}/v1/models", key)
    assert status == 200
    assert json.loads(text)["data"][0]["id"] == "smollm2"


def test_completion_and_stream(address, key):
    status, text = chat(address, key)
    assert status == 200
    assert "Paris" in json.loads(text)["choices"][0]["message"]["content"]
    status, text = chat(address, key, stream=True)
    assert status == 200
    events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    assert "Paris" in "".join(
        json.loads(event)["choices"][0]["delta"].get("content") or "" for event in events[:-1]
    )


def test_second_run_changes_nothing(verb, box, key):
    before = state_of_engine(box)
    ran = verb("provision", "--host", "lab1", "--json")
    assert ran.status == 0, ran.output
    assert ran.json["hosts"]["lab1"]["changed"] == 0, ran.json["hosts"]["lab1"]["changes"]
    assert state_of_engine(box) == before
    assert verb("key", "--host", "lab1").stdout.strip() == key
    assert ran.seconds < 240


def test_the_plan_of_a_provisioned_box_lists_no_change_and_visits_no_role(verb, box):
    ran = verb("plan", "--host", "lab1", "--json")
    assert ran.status == 0, ran.output
    assert (ran.json["changes"], ran.json["visits"]) == ([], {})


def test_the_box_at_a_glance(verb, box):
    ran = verb("status", "--host", "lab1", "--json")
    assert ran.status == 0, ran.output
    seen = ran.json["lab1"]
    assert [(one["name"], one["state"], one["context"]) for one in seen["deployments"]] == [
        ("smollm2", "serving", 4096)
    ]
    assert seen["deployments"][0]["tokens_per_s"] is not None
    assert [card["name"] for card in seen["cards"]] == ["NVIDIA GeForce RTX 5090"]
    assert seen["drifted"] == []
    table = verb("status", "--host", "lab1").output
    assert re.search(r"^lab1 +smollm2 +serving ", table, re.MULTILINE)
    assert max(map(len, table.splitlines())) <= 100


def test_the_box_is_seen_to_be_as_declared(verb, box):
    before = state_of_engine(box)
    ran = verb("verify", "--host", "lab1", "--json")
    assert ran.status == 0, ran.output
    assert ran.json["lab1"]["as_declared"] is True
    assert "Paris" in ran.json["lab1"]["deployments"][0]["answer"]
    assert state_of_engine(box) == before


def test_the_box_knows_what_ran_on_it(verb, box, key):
    ran = verb("history", "--host", "lab1", "--json")
    assert ran.status == 0, ran.output
    *_, first = ran.json["lab1"]["runs"]
    assert (first["verb"], first["outcome"], first["failure"]) == ("provision", "ok", None)
    assert first["changed"]["engine"] >= 1
    assert [(one["deployment"], one["before"]) for one in first["releases"]] == [("smollm2", None)]
    assert ran.json["lab1"]["runs"][0]["verb"] == "verify"
    kept = box.do("cat", "/var/log/boxwright/runs.jsonl")
    assert key not in kept
    assert box.do("stat", "-c", "%a %U", "/var/log/boxwright", "/var/log/boxwright/runs.jsonl").split() == [
        "700", "root", "600", "root",
    ]  # fmt: skip
    # A run that is killed has begun and never ended.
    last = json.loads(kept.splitlines()[-2])
    line = json.dumps(last | {"run": "killed", "process": 4_000_000})
    box.do("sh", "-c", f"cat >>/var/log/boxwright/runs.jsonl <<'END'\n{line}\nEND\n")
    assert "killed: it began and never ended" in verb("history", "--host", "lab1").output


def test_one_talks_with_it_over_ssh(verb, box, key):
    ran = verb("chat", "--host", "lab1", "--prompt", PROMPT, "--max-tokens", "24", "--json")
    assert ran.status == 0, ran.output
    # What it says is left to the model's own sampling.
    assert ran.json["text"].strip()
    assert ran.json["tokens"] > 0
    assert ran.json["prompt_tokens"] > 0
    assert key not in ran.output


def test_its_release_is_written_so_that_the_tools_that_read_it_take_it(verb, box, key, tmp_path):
    """Debian's docker-compose and Podman's generator: unpacked beside, so that the box stays as it is."""
    box.do(
        "sh", "-c",
        "apt-get update -qq && mkdir -p /tmp/tools && cd /tmp/tools "
        "&& apt-get download -qq podman docker-compose && for one in *.deb; do dpkg -x $one .; done",
    )  # fmt: skip
    for format_ in ("compose", "quadlet", "k8s"):
        ran = verb("export", "--host", "lab1", "--format", format_, "--output", tmp_path / format_)
        assert ran.status == 0, ran.output
        for path in (tmp_path / format_).iterdir():
            assert key not in path.read_text()
            text = json.dumps(path.read_text())
            box.do("python3", "-c", "import json, sys, pathlib\n"
                   f"place = pathlib.Path('/tmp/tools/{format_}'); place.mkdir(exist_ok=True)\n"
                   f"(place / {path.name!r}).write_text({text})")  # fmt: skip
    compose = "/tmp/tools/usr/libexec/docker/cli-plugins/docker-compose"
    config = box.do(compose, "--file", "/tmp/tools/compose/compose.yaml", "config", "--format", "json")
    taken = json.loads(config)["services"]["smollm2"]
    [container] = json.loads(box.do("docker", "inspect", "boxwright-smollm2"))
    assert taken["image"] == container["Config"]["Image"]
    unit = box.do(
        "env", "QUADLET_UNIT_DIRS=/tmp/tools/quadlet", "/tmp/tools/usr/libexec/podman/quadlet", "-dryrun"
    )
    run = next(line for line in unit.splitlines() if line.startswith("ExecStart=") and " run " in line)
    assert container["Config"]["Image"] in run
    # What runs has the same words, mounts and variables as what was written.
    command = [word.replace("$$", "$") for word in [*taken["entrypoint"], *taken["command"]]]
    runs = [*container["Config"]["Entrypoint"], *container["Config"]["Cmd"]]
    assert [*command[:2], *command[3:]] == [*runs[:2], *runs[3:]]
    assert command[2].endswith(runs[2])
    assert (
        taken["environment"].items() <= dict(one.split("=", 1) for one in container["Config"]["Env"]).items()
    )
    mounts = {one["Destination"]: one["RW"] for one in container["Mounts"]}
    written = {one["target"]: not one.get("read_only", False) for one in taken["volumes"]}
    assert {**written, taken["secrets"][0]["target"]: False} == mounts
    box.do("rm", "-r", "/tmp/tools")


def test_a_full_run_visits_every_role_and_changes_nothing(verb, box):
    before = state_of_engine(box)
    ran = verb("provision", "--host", "lab1", "--full", "--json")
    assert ran.status == 0, ran.output
    assert ran.json["hosts"]["lab1"]["changed"] == 0, ran.json["hosts"]["lab1"]["changes"]
    assert state_of_engine(box) == before


def test_the_plan_lists_what_another_declaration_changes(verb, box, over_lab):
    ran = verb("plan", "--host", "lab1", "--json", *over_lab("lab1", gpu_tuning_max_clock_mhz=1900))
    assert ran.status == 0, ran.output
    assert [change["text"] for change in ran.json["changes"]] == [
        "clock lock 0\N{EN DASH}2100 MHz -> 0\N{EN DASH}1900 MHz"
    ]


def test_recorded_facts_give_the_same_plan(verb, box, tmp_path):
    facts = tmp_path / "facts.json"
    facts.write_text(verb("facts", "--host", "lab1", "--json").stdout)
    ran = verb("plan", "--host", "lab1", "--facts", facts, "--json")
    assert ran.status == 0, ran.output
    assert ran.json["changes"] == []


#: What somebody does to a box behind Boxwright's back, and what the plan says of it (None: only looked at).
DRIFTS = (
    ("echo '# mine' >> /etc/systemd/system/boxwright-gpu-tuning.service",
     "/etc/systemd/system/boxwright-gpu-tuning.service edited -> as it was left"),
    ("chmod 0600 /usr/local/lib/boxwright/gpu-tuning.py",
     "/usr/local/lib/boxwright/gpu-tuning.py edited -> as it was left"),
    ("systemctl stop boxwright-gpu-tuning.service", "clock lock none -> 0\N{EN DASH}2100 MHz"),
    ("systemctl disable boxwright-gpu-tuning.service",
     "unit boxwright-gpu-tuning.service inactive, disabled"),
    ("nvidia-smi -pm 0", "persistence off -> on"),
    ("systemctl disable boxwright-smollm2.service", "unit boxwright-smollm2.service active, disabled"),
    ("echo '# mine' >> /etc/systemd/system/boxwright-smollm2.service",
     "/etc/systemd/system/boxwright-smollm2.service edited -> as it was left"),
    ("rm /var/lib/boxwright/releases/smollm2/current", "smollm2: release none -> "),
    ("apt-mark unhold nvidia-driver-cuda", "hold of nvidia-driver-cuda lifted -> held"),
    ("apt-mark unhold docker.io", "hold of docker.io lifted -> held"),
    ("rm /etc/modprobe.d/boxwright-nvidia.conf",
     "/etc/modprobe.d/boxwright-nvidia.conf gone -> as it was left"),
    ("sed -i s/990/1/ /etc/apt/preferences.d/boxwright-container-toolkit.pref",
     "/etc/apt/preferences.d/boxwright-container-toolkit.pref edited -> as it was left"),
    ("sed -i s/depot.boxwright.lab/elsewhere.example/ /etc/apt/sources.list.d/boxwright-cuda.sources",
     "package source of the driver http://elsewhere.example"),
    ("sed -i s/nvidia-container-runtime/runc/ /etc/docker/daemon.json",
     "Docker's runtimes.nvidia.path runc -> "),
    ("rm /etc/cdi/nvidia.yaml", None),
    ("touch /var/lib/boxwright/models/*/*/config.json", "smollm2: weights none -> "),
    ("echo '# theirs' > /etc/apt/sources.list.d/theirs.list", None),
)  # fmt: skip


def test_what_others_did_to_a_box_is_found_in_one_trip_and_mended(verb, box):
    """The quick way finds each that the full way mends: nothing is left for a full visit afterwards."""
    for command, _ in DRIFTS:
        box.do("sh", "-c", command)
    planned = verb("plan", "--host", "lab1", "--json")
    assert planned.status == 0, planned.output
    texts = [change["text"] for change in planned.json["changes"]]
    missed = [text for _, text in DRIFTS if text and not any(text in one for one in texts)]
    assert not missed, texts
    assert set(planned.json["visits"]) == {
        "nvidia_driver", "container_runtime", "gpu_tuning", "model_weights", "engine",
    }  # fmt: skip
    verified = verb("verify", "--host", "lab1")
    assert verified.status == 1, verified.output
    assert "lab1: NOT as declared" in verified.output
    assert "drift   clock lock none" in verified.output
    mended = verb("provision", "--host", "lab1", "--json")
    assert mended.status == 0, mended.output
    assert mended.json["hosts"]["lab1"]["changed"] > 0
    assert mended.json["hosts"]["lab1"]["unplanned"] == []
    box.do("rm", "/etc/apt/sources.list.d/theirs.list")
    again = verb("provision", "--host", "lab1", "--full", "--json")
    assert again.status == 0, again.output
    assert again.json["hosts"]["lab1"]["changed"] == 0, again.json["hosts"]["lab1"]["changes"]
    assert verb("plan", "--host", "lab1", "--json").json["visits"] == {}


def test_check_mode_reports_no_change(verb, box):
    before = state_of_engine(box)
    ran = verb("provision", "--host", "lab1", "--check", "--json")
    assert ran.status == 0, ran.output
    assert ran.json["hosts"]["lab1"]["changed"] == 0, ran.json["hosts"]["lab1"]["changes"]
    assert state_of_engine(box) == before


def test_the_doctor_finds_a_provisioned_box_well(verb, box):
    ran = verb("doctor", "--host", "lab1", "--json")
    assert ran.status == 0, ran.output
    found = ran.json["lab1"]
    assert found["verdict"] != "fatal"
    assert [(one["name"], one["state"]) for one in found["deployments"]] == [("smollm2", "serving")]


def test_a_benchmark_tells_the_engines_own_figures_and_keeps_them(verb, box, key):
    """Both sweeps, one place each: the real `vllm bench serve` in the container that serves."""
    before = state_of_engine(box)
    words = ("--concurrency", "2", "--context", "256", "--repeats", "1", "--output", "16", "--json")
    ran = verb("bench", "--host", "lab1", *words)
    assert ran.status == 0, ran.output
    found = ran.json["lab1"]
    assert key not in ran.output
    text = box.do("cat", found["kept"])
    assert key not in text
    kept = json.loads(text)
    assert kept["release"] == found["release"]
    assert [point["failed"] for point in kept["points"]] == [None, None]
    for told, point in zip(found["points"], kept["points"], strict=True):
        [repeat] = point["repeats"]
        engine, [figures] = repeat["engine"], told["repeats"]
        assert figures["ttft_ms"] == engine["median_ttft_ms"]
        assert figures["output_tokens_per_s"] == engine["output_throughput"]
        assert figures["decode_tokens_per_s"] == pytest.approx(1000 / engine["median_tpot_ms"])
        assert figures["completed"] == engine["num_prompts"]
        assert figures["output_tokens"] == 16 * engine["num_prompts"]
        # What the engine counted meanwhile: the benchmark's own and nothing else, hardly any from the cache.
        assert repeat["counted"]["generation_tokens"] == engine["total_output_tokens"]
        assert figures["tokens_of_others"] == 0
        assert figures["cached_tokens"] < 0.2 * figures["prompt_tokens"]
        assert figures["tokens_per_joule"] > 0
    assert found["points"][1]["repeats"][0]["prefill_tokens_per_s"] > 0
    assert "tmp/boxwright-bench" not in box.do("docker", "exec", "boxwright-smollm2", "find", "/tmp")
    listed = verb("bench", "--host", "lab1", "--runs")
    assert listed.status == 0, listed.output
    assert kept["id"] in listed.output
    assert state_of_engine(box) == before


def test_libraries_that_do_not_fit_the_module_are_told_and_what_runs_is_left(verb, box, over_lab):
    """As after an upgrade behind Boxwright's back: a container made anew would get no cards."""
    before = state_of_engine(box)
    box.do("lab-gpu", "fault", "mismatch")
    try:
        ran = verb("provision", "--host", "lab1", *over_lab("lab1", nvidia_driver_reboot=False))
        diagnosed = verb("doctor", "--host", "lab1", "--json")
    finally:
        box.do("lab-gpu", "clear", "mismatch")
    assert ran.status == 1, ran.output
    assert re.search(r"Reboot needed: module 580\.105\.08 is loaded, the libraries are 580\.105 ", ran.output)
    assert "nvidia_driver_reboot: true" in ran.output
    assert diagnosed.status == 1, diagnosed.output
    assert diagnosed.json["lab1"]["causes"][0]["id"] == "driver-mismatch"
    assert state_of_engine(box) == before


def test_everything_comes_back_after_a_reboot(box, address, key):
    locked = box.do("nvidia-smi", "--query-gpu=persistence_mode,power.limit", "--format=csv,noheader")
    assert "Enabled" in locked
    box.restart()
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            if ask(f"{address}/health")[0] == 200:
                break
        except OSError:
            pass
        time.sleep(2)
    status, text = chat(address, key)
    assert status == 200
    assert "Paris" in json.loads(text)["choices"][0]["message"]["content"]
    assert box.do("nvidia-smi", "--query-gpu=persistence_mode,power.limit", "--format=csv,noheader") == locked
    # No query of nvidia-smi tells a lock: the simulated hardware's own state does.
    cards = json.loads(box.do("cat", "/run/lab-gpu/state.json"))["cards"]
    assert all("2100" in json.dumps(card) for card in cards.values()), cards
    assert (
        box.do("systemctl", "is-active", "docker.service", "boxwright-smollm2.service").split()
        == ["active"] * 2
    )


def readme_commands():
    """Every command line of the README's shell blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", Path("README.md").read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


@pytest.fixture(scope="module")
def own_inventory(first, tmp_path_factory):
    """An inventory of a user's own: the README's way of naming a box, and the box is the lab's."""
    place = tmp_path_factory.mktemp("own inventory")
    known = load([Path("inventory/lab")]).variables("lab1")
    (place / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"box1": {"ansible_host": "lab1"}}}}))
    (place / "host_vars").mkdir()
    (place / "host_vars" / "box1.yml").write_text(
        yaml.safe_dump({**known, "box_gpus": {"model": "rtx5090", "count": 1}})
    )
    return place


@pytest.fixture(scope="module")
def groups_of_ones_own(first, tmp_path_factory):
    """An inventory without hosts; its groups say how the lab is reached and where it gets things from."""
    place = tmp_path_factory.mktemp("new inventory")
    known = load([Path("inventory/lab")]).variables("lab1")
    kept = {name: value for name, value in known.items() if not name.startswith(("box_deploy", "gpu_tuning"))}
    (place / "group_vars").mkdir()
    (place / "group_vars" / "all.yml").write_text(yaml.safe_dump(kept))
    return place


def test_readme_init_of_a_box(verb, groups_of_ones_own, box):
    """The README's first two commands for a real box, over SSH; then validate and plan what was written."""
    verbs = ("init", "recommend")
    init, recommend = [words for words in map(str.split, readme_commands()) if words[1] in verbs]
    init[init.index("you@box")] = "lab1"
    words = [*init[1:], "--inventory", groups_of_ones_own]
    before = state_of_engine(box)
    # The lab's hub has no other model of the catalog, and its registry no other image.
    served = ["--model", "smollm2", "--image", "depot.boxwright.lab:5000/vllm/vllm-openai:v0.32.0"]
    ran = verb(*words, *served, "--json")
    assert ran.status == 0, ran.output
    assert ran.json["declaration"]["box_gpus"] == {"model": "rtx5090", "count": 1}
    loaded = box.do("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    assert ran.json["declaration"]["nvidia_driver_branch"] == loaded.split(".")[0]
    [deployment] = ran.json["declaration"]["box_deployments"]
    assert (deployment["model"], deployment["port"]) == ("smollm2-135m-instruct", 8001)
    assert "nothing wrong" in verb("validate", "--inventory", groups_of_ones_own).output
    planned = verb("plan", "--host", "box1", "--inventory", groups_of_ones_own, "--json")
    assert planned.status == 0, planned.output
    assert planned.json["gates"] == []
    compared = verb(*recommend[1:], "--inventory", groups_of_ones_own, *served)
    assert compared.status == 0, compared.output
    assert "smollm2-135m-instruct" in compared.output
    assert state_of_engine(box) == before
    again = verb(*words)
    assert again.status == 2
    assert 'has a host "box1" already' in again.output


def test_readme_commands_for_a_box_of_ones_own(verb, own_inventory, box, key):
    """The README's commands, in its order; --inventory stands for what a user has in inventory/local."""
    verbs = ("validate", "plan", "provision", "key")
    commands = [command for command in readme_commands() if command.split()[1] in verbs][1:]
    assert [command.split()[1] for command in commands] == ["validate", "plan", "provision", "key"]
    before = state_of_engine(box)
    said = [verb(*command.split()[1:], "--inventory", own_inventory) for command in commands]
    assert [ran.status for ran in said] == [0, 0, 0, 0], [ran.output for ran in said]
    assert "nothing wrong" in said[0].output
    assert "box1: will work" in said[1].output
    assert "Paris" in said[2].output
    assert said[3].stdout.strip() == key
    assert state_of_engine(box) == before


def test_readme_declaration_is_valid_and_fits(verb, tmp_path):
    """The two files that the README shows."""
    for name, text in re.findall(
        r"```yaml\n# inventory/local/(\S+)\n(.*?)```", Path("README.md").read_text(), re.DOTALL
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    ran = verb("plan", "--host", "box1", "--offline", "--inventory", tmp_path)
    assert ran.status == 0, ran.output
    assert "box1: will work" in ran.output


def test_readme_shows_no_command_that_no_test_runs(verb):
    """The rest of them: the first two are this module's and CI's own, the lab's are below."""
    tried = {
        "./invoke provision --host lab1", "./invoke test", "./invoke lab.status", "./invoke lab.down",
        "./invoke validate", "./invoke plan --host box1 --offline", "./invoke provision --host box1",
        "./invoke key --host box1", "./invoke init --host you@box --name box1",
        "./invoke recommend --host box1",
    }  # fmt: skip
    assert set(readme_commands()) == tried
    assert "lab1" in verb("lab.status").output


def test_lab_down_leaves_nothing(verb):
    listings = (("ps", "-aq"), ("network", "ls", "-q"), ("volume", "ls", "-q"), ("images", "-q"))
    identity = json.loads(Path(".lab/state.json").read_text())["id"]
    assert verb("lab.down").status == 0
    for words in listings:
        done = subprocess.run(
            ["docker", *words, "--filter", f"label=boxwright.lab={identity}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "", words
