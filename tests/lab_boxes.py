"""Simulated hosts as tests see them: looked at from outside, changed as people do, with roles run on them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
#: Where programs and people configure a host.
PLACES = ("/etc", "/opt", "/usr/local", "/root", "/var/lib/boxwright", "/var/lib/dkms", "/run/boxwright")
STATE = Path(__file__).with_name("host_state.py")


class SimulatedHost:
    """A host of the lab, looked at through Docker: not through anything that is being tested."""

    def __init__(self, name):
        self.name = name

    @property
    def container(self):
        state = json.loads((ROOT / ".lab" / "state.json").read_text())
        return f"bw-{state['id']}-{self.name}"

    def do(self, *argv, check=True, timeout=120):
        """Run a program as root on the host; its stdout."""
        done = subprocess.run(
            ["docker", "exec", self.container, *argv],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        if check and done.returncode:
            raise AssertionError(f"{self.name}: {argv} ended {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def fingerprint(self):
        """What a run might have changed: packages, configuration, units, Boxwright's own directories."""
        return {
            "packages": self.do("dpkg-query", "-W"),
            "files": self.do(
                "find",
                "/etc",
                "/opt",
                "/usr/local",
                "/var/lib/boxwright",
                "/root",
                "-xdev",
                "-type",
                "f",
                "-printf",
                "%p %s %T@\n",
                check=False,
            ),
            "modules": self.do("ls", "/sys/module"),
        }

    def state(self):
        """What an uninstall brings back, by what it is of: packages, holds, units, files, modules, cards."""
        return json.loads(self.do("python3", "-c", STATE.read_text(), *PLACES))

    def restart(self):
        """Boot anew, as a reboot does."""
        subprocess.run(["docker", "restart", self.container], check=True, capture_output=True, timeout=180)

    def put(self, path, text, mode="644"):
        """A file of somebody's, with the directories above it."""
        self.do("mkdir", "-p", str(Path(path).parent))
        self.do("sh", "-c", 'printf %s "$1" > "$2" && chmod "$3" "$2"', "put", text, path, mode)

    def add_user(self, name, password, rule=""):
        """A user who comes in by the lab's key. rule: their line of sudoers, none without one."""
        # As a test that was stopped left it.
        self.do("userdel", "--force", "--remove", name, check=False)
        self.do("useradd", "--create-home", "--shell", "/bin/bash", name)
        self.do("sh", "-c", 'echo "$1:$2" | chpasswd', "set", name, password)
        self.do("sh", "-c", 'cp -r /home/ops/.ssh "/home/$1/" && chown -R "$1:" "/home/$1/.ssh"', "key", name)
        if rule:
            self.put(f"/etc/sudoers.d/{name}", rule + "\n", "440")

    def remove_user(self, name):
        self.do("rm", "-f", f"/etc/sudoers.d/{name}")
        # A connection that is kept open is the user's.
        self.do("pkill", "-KILL", "-u", name, check=False)
        self.do("userdel", "--force", "--remove", name)

    def add_ipv6(self, address):
        """An IPv6 address in the lab's network, until the next boot."""
        self.do("sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6")
        self.do("ip", "-6", "address", "replace", f"{address}/64", "dev", "eth0", "nodad")

    def behind(self, jump, address):
        """Lines of an ssh configuration that lead to an address of it through a jump host.

        Whether the host's key is a known one is not the question here.
        """
        return (
            f"Host {address}\n ProxyJump {jump}\n HostKeyAlias {self.name}\n"
            " UserKnownHostsFile /dev/null\n StrictHostKeyChecking no\n"
            f" IdentityFile {ROOT / '.lab' / 'id_ed25519'}\n"
        )


class RoleBox:
    """A simulated host and what is declared for it: one file, edited by tests as by a person."""

    def __init__(self, host, directory, *roles):
        self.host, self.directory, self.inventory = host, directory, directory / "inventory"
        self.do, self.declared = host.do, {}
        (self.inventory / "host_vars").mkdir(parents=True)
        (self.inventory / "hosts.yml").write_text(yaml.safe_dump({"lab": {"hosts": {host.name: {}}}}))
        play = {"hosts": "lab", "become": True, "gather_facts": False, "roles": list(roles)}
        (directory / "converge.yml").write_text(yaml.safe_dump([play]))

    def run(self, **declared):
        """Run the roles with what is declared, and with `declared` for once; status, output, changes."""
        variables = {**self.declared, **declared}
        (self.inventory / "host_vars" / f"{self.host.name}.yml").write_text(yaml.safe_dump(variables))
        report = self.directory / "report.json"
        report.unlink(missing_ok=True)
        inventories = ["-i", ROOT / "inventory" / "lab", "-i", self.inventory]
        done = subprocess.run(
            [
                Path(sys.executable).with_name("ansible-playbook"),
                *inventories,
                "--limit",
                self.host.name,
                self.directory / "converge.yml",
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "BOXWRIGHT_ROOT": str(ROOT),
                "BOXWRIGHT_REPORT": str(report),
                "ANSIBLE_STDOUT_CALLBACK": "boxwright",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
            stdin=subprocess.DEVNULL,
        )
        output = done.stdout + done.stderr
        assert report.exists(), output
        assert "Traceback" not in output, output
        changed = json.loads(report.read_text())["hosts"][self.host.name]["changed"]
        return done.returncode, " ".join(output.split()), changed

    def refused(self, *words, **declared):
        """See a run fail with these words, on a host that is the same afterwards."""
        before = self.host.fingerprint()
        status, output, _ = self.run(**declared)
        assert status != 0, output
        for word in words:
            assert word in output, output
        assert self.host.fingerprint() == before, output

    def converges(self, **declared):
        """See a run come to its end, and another one find nothing to do."""
        status, output, _ = self.run(**declared)
        assert status == 0, output
        again, said, changed = self.run(**declared)
        assert (again, changed) == (0, 0), said
        return output

    def driver(self):
        """The driver that answers now."""
        words = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return self.do(*words).splitlines()[0]

    def driver_versions(self):
        """The versions of the driver's packages that are there."""
        lines = [line.split("\t") for line in self.do("dpkg-query", "-W").splitlines()]
        return {
            line[1]
            for line in lines
            if line[1:] and line[1] and line[0].startswith(("nvidia-", "libnvidia-", "libcuda1"))
        }
