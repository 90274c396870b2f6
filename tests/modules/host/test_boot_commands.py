"""Lines of rc.local that set the cards: found where the shell sees them, and given back to the byte."""

import subprocess

import pytest
from ansible.module_utils import boot_commands, boot_scripts

TAKEN = boot_commands.TAKEN.encode()
#: What Python takes for the end of a line and the shell does not.
ODD_ENDS = ["\x0c", "\x0b", "\x1c", "\x85", "\u2028", "\r"]


@pytest.fixture
def host(tmp_path):
    (tmp_path / "etc").mkdir()
    script = tmp_path / "etc" / "rc.local"

    def make(content):
        script.write_bytes(content)
        script.chmod(0o755)
        return str(tmp_path), script

    return make


def lines_of(root):
    return [one["line"] for one in boot_commands.found(root) if one["movable"]]


@pytest.mark.parametrize("odd", ODD_ENDS)
@pytest.mark.parametrize("end", ["", "\n"])
def test_lines_are_those_of_the_shell(host, odd, end):
    before = f"#!/bin/sh\n# page{odd} two\nmodprobe zfs\nnvidia-smi -pl 400{end}".encode()
    root, script = host(before)
    assert lines_of(root) == [4]
    boot_commands.take_over([4], root)
    assert script.read_bytes() == before.replace(b"nvidia-smi", TAKEN + b"nvidia-smi")
    assert boot_commands.taken(root) == [4]
    assert boot_commands.found(root) == [], "what was taken over is no other place any more"
    boot_commands.give_back(root)
    assert script.read_bytes() == before


def test_bytes_that_are_no_utf_8_stay(host):
    before = b"#!/bin/sh\r\n# caf\xe9\r\nnvidia-smi -pl 400\n"
    root, script = host(before)
    boot_commands.take_over(lines_of(root), root)
    assert script.read_bytes() == before.replace(b"nvidia-smi", TAKEN + b"nvidia-smi")
    boot_commands.give_back(root)
    assert script.read_bytes() == before
    assert list(script.parent.iterdir()) == [script], "the copy that says no more is gone"


@pytest.mark.parametrize("content", [b"\0nvidia-smi -pl 400\n", b"#" * (boot_scripts.LONGEST + 1)])
def test_what_is_no_script_is_not_read(host, content):
    assert boot_commands.found(host(content)[0]) == []


TEXTS = [
    b"cat > /etc/motd <<EOF\nnvidia-smi -pl 300\nEOF\n",
    b"cat <<-'EOF'\n\tnvidia-smi -pl 300\n\tEOF\n",
    b"echo 'limits:\nnvidia-smi -pl 300\n'\n",
    b'echo "limits:\nnvidia-smi -pl 300\n"\n',
    b"true || : 'nvidia-smi\nnvidia-smi -pl 300'\n",
    b"# nvidia-smi -pl 300\n",
    b"exit 0\nnvidia-smi -pl 300\n",
    b"echo nvidia-smi -pl 300 >> /var/log/boot\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_text_to_the_script_is_no_command(host, text):
    assert boot_commands.found(host(b"#!/bin/sh\n" + text)[0]) == []


@pytest.mark.parametrize(
    "text",
    [
        b"sh <<EOF\nnvidia-smi -pl 300\nEOF\n",
        b"sh -c '\nnvidia-smi -pl 300\n'\n",
        b"echo 'nvidia-smi -pl 300' | at now\n",
        b"nvidia-smi -pl 300 ||\n reboot\n",
        b"x=$(\nnvidia-smi -pl 300\n)\n",
        b"if true; then nvidia-smi -pl 300; fi\n",
        b"nvidia-smi -pm 1 && nvidia-smi -pl 300\n",
        b"SMI=/usr/bin/nvidia-smi\n$SMI -pl 300\n",
        b'SMI="nvidia-smi"; "${SMI}" -pl 300\n',
        b"sleep 5 \\\n && nvidia-smi -pl 300\n",
        b"nvidia-smi -pl 300 'never closed\n",
        b"timeout 10 nvidia-smi -pl 300\n",
    ],
)
def test_what_is_more_than_one_call_is_told_and_left(host, text):
    (entry,) = boot_commands.found(host(b"#!/bin/sh\n" + text)[0])
    assert (entry["what"], entry["movable"], entry["path"]) == ("other", False, "/etc/rc.local")
    assert entry["line"] in (2, 3)


@pytest.mark.parametrize(
    ("text", "first", "last", "what"),
    [
        (b"nvidia-smi \\\n -pl 300\n", 2, 3, "power limit"),
        (b"nvidia-smi \\\n  -i 1 \\\n\t-lgc 0,2100\n", 2, 4, "clocks"),
        (b"nvidia-smi -pl 300 ||\n  true\n", 2, 3, "power limit"),
        (b"nvidia-smi -pl '300'\n", 2, 2, "power limit"),
        (b"cat <<E\nit's\nE\nnvidia-smi -pl 300\n", 5, 5, "power limit"),
        (b"if test -e /x; then\n  nvidia-smi -pl 300 \\\n > /dev/null\nfi\n", 3, 4, "power limit"),
    ],
)
def test_a_call_on_several_lines_is_taken_over_whole(host, text, first, last, what):
    before = b"#!/bin/sh\n" + text + b"echo done\n"
    root, script = host(before)
    (entry,) = boot_commands.found(root)
    assert (entry["line"], entry["last"], entry["what"], entry["movable"]) == (first, last, what, True)
    boot_commands.take_over(list(range(first, last + 1)), root)
    assert boot_commands.found(root) == []
    ran = subprocess.run(
        ["/bin/sh", script], capture_output=True, text=True, check=False, env={"PATH": "/none"}
    )
    assert ran.stdout == "done\n", "nothing of it runs, and what stands around it does"
    boot_commands.give_back(root)
    assert script.read_bytes() == before


@pytest.mark.parametrize(
    ("call", "path"),
    [
        ("/usr/local/bin/gpu.sh", "/usr/local/bin/gpu.sh"),
        ("sh /opt/x.sh", "/opt/x.sh"),
        ("bash -x '/opt/x.sh' &", "/opt/x.sh"),
        (". /opt/x.sh", "/opt/x.sh"),
        ("sleep 5 && /opt/x.sh || true", "/opt/x.sh"),
        ("sleep 5;/opt/x.sh", "/opt/x.sh"),
        ("if [ -x /opt/x.sh ]; then /opt/x.sh; fi", "/opt/x.sh"),
        ("[ -x /opt/x.sh ]&&/opt/x.sh", "/opt/x.sh"),
        ("(/opt/x.sh)", "/opt/x.sh"),
        ("cd /opt && ./x.sh", "/opt/x.sh"),
        ("nohup gpu-limits >/dev/null &", "/usr/local/sbin/gpu-limits"),
        ("su - root -c '/opt/x.sh now'", "/opt/x.sh"),
        ("~/x.sh", "/root/x.sh"),
        ("$HOME/x.sh", "/root/x.sh"),
        ("/usr/bin/setlimits", "/usr/bin/setlimits"),
    ],
)
def test_scripts_that_it_runs_are_followed_and_named(host, tmp_path, call, path):
    root, _ = host(f"#!/bin/sh\n\n{call}\n".encode())
    script = tmp_path / path[1:]
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("#!/bin/bash\nset -e\nnvidia-smi \\\n  -pl 300\n")
    (entry,) = boot_commands.found(root)
    assert (entry["path"], entry["line"], entry["movable"]) == (path, 3, False)
    assert (entry["what"], entry["via"]) == ("power limit", "/etc/rc.local:3")


def test_scripts_of_scripts_are_followed_once_and_to_an_end(host, tmp_path):
    root, _ = host(b"#!/bin/sh\n/opt/a.sh\n/opt/a.sh\n")
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/a.sh").write_text("/opt/b.sh\n/etc/rc.local\n")
    (tmp_path / "opt/b.sh").write_text("/opt/a.sh\nnvidia-smi -lgc 0,1500\n")
    (entry,) = boot_commands.found(root)
    assert (entry["path"], entry["line"], entry["via"]) == ("/opt/b.sh", 2, "/opt/a.sh:1")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('#!/usr/bin/env python3\nimport subprocess\nsubprocess.run(["nvidia-smi", "-pl", "300"])\n', 3),
        ('#!/usr/bin/python3\nrun([\n    "nvidia-smi",\n    "-lgc",\n    "0,1"])\n', 3),
        ("#!/usr/bin/python3\nimport pynvml\npynvml.nvmlDeviceSetPowerManagementLimit(h, 300000)\n", 3),
        ("#!/usr/bin/perl\nsystem('nvidia-smi -pm 1');\n", 2),
        ('#!/usr/bin/python3\n# nvidia-smi -pl 300\nrun(["nvidia-smi", "-q"])\n', None),
    ],
)
def test_programs_in_other_languages_are_looked_into(host, tmp_path, text, line):
    root, _ = host(b"#!/bin/sh\n/opt/gpu.py\n")
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/gpu.py").write_text(text)
    assert [entry["line"] for entry in boot_commands.found(root)] == ([line] if line else [])


def test_an_rc_local_in_another_language_is_told_and_left(host):
    root, _ = host(b'#!/usr/bin/python3\nimport os\nos.system("nvidia-smi -pl 300")\n')
    assert [(entry["line"], entry["movable"]) for entry in boot_commands.found(root)] == [(3, False)]


SET = "nvidia-smi -pl 300"
WANTED = "[Install]\nWantedBy=multi-user.target\n"


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("/etc/systemd/system/x.service", f"[Service]\nExecStart=-/usr/bin/{SET}\n", 2),
        ("/etc/systemd/system/x.service", "[Service]\nExecStart=/usr/bin/nvidia-smi \\\n  -pl 300\n", 2),
        ("/etc/systemd/system/x.service", f"[Service]\nExecStart=/bin/sh -c '{SET}; true'\n", 2),
        ("/etc/systemd/system/x.service", f"[Service]\nExecStartPre={SET}\nExecStart=/bin/x\n", 2),
        ("/etc/systemd/system/ollama.service.d/gpu.conf", f"[Service]\nExecStartPost={SET}\n", 2),
        ("/usr/lib/systemd/system/x.service", f"[Service]\nExecStart={SET}\n", 2),
        ("/usr/local/lib/systemd/system/x.service", f"[Service]\nExecStart={SET}\n", 2),
        ("/etc/crontab", f"SHELL=/bin/sh\n@reboot root {SET}\n", 2),
        ("/etc/cron.d/x", f"*/5 * * * * root {SET}\n", 1),
        ("/etc/cron.d/x", f"@reboot  root  sleep 30 && {SET}\n", 1),
        ("/var/spool/cron/crontabs/root", f"# x\n@reboot {SET}\n", 2),
        ("/var/spool/cron/root", f"0 3 * * mon {SET}\n", 1),
        ("/etc/anacrontab", f"1 5 gpu {SET}\n", 1),
        ("/etc/cron.daily/gpu", f"#!/bin/sh\n{SET}\n", 2),
        ("/etc/init.d/gpu", f"#!/bin/sh\n{SET}\n", 2),
        ("/etc/udev/rules.d/99-gpu.rules", f'# x\nACTION=="add", RUN+="/usr/bin/{SET}"\n', 2),
        ("/etc/modprobe.d/gpu.conf", f"install nvidia modprobe -i nvidia && {SET}\n", 1),
    ],
)
def test_every_place_that_runs_commands_by_itself_is_looked_at(tmp_path, path, text, line):
    file = tmp_path / path[1:]
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o755)
    (entry,) = boot_commands.found(str(tmp_path))
    assert (entry["path"], entry["line"], entry["movable"], entry["via"]) == (path, line, False, "")


@pytest.mark.parametrize(
    "files",
    [
        {"/etc/systemd/system/x.service": f"[Service]\nExecStart={SET}\n{WANTED}"},
        {"/etc/systemd/system/x.service": f"[Service]\nExecStop={SET}\nExecReload={SET}\n"},
        {"/etc/systemd/system/x.service": f"[Service]\n#ExecStart={SET}\n"},
        {"/etc/systemd/system/x.service": f"[Unit]\nDescription={SET}\n"},
        {
            "/etc/systemd/system/x.service": "[Service]\nExecStart=/bin/true\n",
            "/usr/lib/systemd/system/x.service": f"[Service]\nExecStart={SET}\n",
        },
        {"/etc/systemd/system/boxwright-gpu-tuning.service": f"[Service]\nExecStart={SET}\n"},
        {"/etc/crontab": f"#@reboot root {SET}\nX={SET}\n"},
        {"/etc/udev/rules.d/1.rules": f'# RUN+="{SET}"\n'},
    ],
)
def test_what_does_not_run_is_not_told(tmp_path, files):
    for path, text in files.items():
        (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path[1:]).write_text(text)
    assert boot_commands.found(str(tmp_path)) == []


@pytest.mark.parametrize(
    "link",
    [
        "multi-user.target.wants/x.service",
        "timers.target.wants/x.timer",
        "y.service.requires/x.service",
        "z.service",
    ],
)
def test_a_unit_that_something_links_to_starts(tmp_path, link):
    folder = tmp_path / "etc/systemd/system"
    (folder / link).parent.mkdir(parents=True, exist_ok=True)
    (folder / "x.service").write_text(f"[Service]\nExecStart={SET}\n{WANTED}Alias=z.service\n")
    (folder / link).symlink_to("/etc/systemd/system/x.service")
    assert boot_commands.found(str(tmp_path))


def test_a_masked_unit_does_not_start(tmp_path):
    for folder in ("etc", "usr/lib"):
        (tmp_path / folder / "systemd/system").mkdir(parents=True)
    (tmp_path / "etc/systemd/system/x.service").symlink_to("/dev/null")
    (tmp_path / "usr/lib/systemd/system/x.service").write_text(f"[Service]\nExecStart={SET}\n")
    assert boot_commands.found(str(tmp_path)) == []


def test_a_script_of_a_unit_names_the_unit(tmp_path):
    for path, text in {
        "etc/systemd/system/x.service": "[Service]\nType=oneshot\nExecStart=/bin/bash /opt/x.sh\n",
        "opt/x.sh": f"{SET}\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (entry,) = boot_commands.found(str(tmp_path))
    assert (entry["path"], entry["line"], entry["via"]) == ("/opt/x.sh", 1, "/etc/systemd/system/x.service:3")


def test_secrets_in_addresses_are_not_told(host):
    root, _ = host(b"#!/bin/sh\nnvidia-smi -pl 300; curl https://me:secret@x\n")
    (entry,) = boot_commands.found(root)
    assert "secret" not in entry["text"]
