"""dnf, apt and their like for tests: as they once answered, or, to record anew, the real ones over a root.

A new recording: apt-get install dnf dnf-plugins-core rpm createrepo-c (or the same on a Fedora), then as root
    BOXWRIGHT_RECORD=1 pytest tests/modules/host/test_dnf_packages.py tests/modules/host/test_rocky.py
and for apt, on a Debian or Ubuntu of any release, as root
    BOXWRIGHT_RECORD=1 pytest tests/modules/host/test_ubuntu.py
"""

import json
import os
import subprocess
from pathlib import Path

from host_doubles import World

RECORDED = Path(__file__).with_name("recorded")
RECORDING = bool(os.environ.get("BOXWRIGHT_RECORD"))
CONFIGURATION = """[main]
gpgcheck=0
reposdir={place}/repos.d
pluginpath={place}/plugins
"""
REPOSITORY = """[cuda]
name=cuda
baseurl=file://{repository}
gpgcheck=0
"""


UBUNTU = (
    'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="{release}"\nPRETTY_NAME="Ubuntu {release} LTS"\n'
)
APT = """Dir "{root}/";
Dir::State::status "{root}/var/lib/dpkg/status";
Dir::Bin::methods "/usr/lib/apt/methods";
Dir::Bin::dpkg "/usr/bin/dpkg";
DPkg::Options {{ "--root={root}"; "--force-script-chrootless"; }};
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Sandbox::User "root";
Acquire::Languages "none";
"""


class RecordedHost:
    """A host whose package manager answers as recorded. name: of the recording.

    repository: the packages' directory, for a new recording.
    """

    folder = ""
    os_release = ""

    def __init__(self, name, root, tmp_path, monkeypatch, repository):
        self.file, self.root = RECORDED / self.folder / f"{name}.json", root
        (root / "etc").mkdir()
        (root / "etc/os-release").write_text(self.os_release)
        if RECORDING:
            state = {"answers": [], **self.real(tmp_path, repository)}
        else:
            state = {"answers": json.loads(self.file.read_text())}
        source = "recording" if RECORDING else "replayed"
        self.world = World(tmp_path, monkeypatch, source, root=str(root), **state)

    def keep(self):
        """Write what was recorded, where something was."""
        if RECORDING:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(self.world["answers"], indent=1) + "\n")

    def answered(self):
        """What was asked so far, with the answers."""
        return self.world["answers"][: len(self.world["calls"])]


class DnfHost(RecordedHost):
    """A host with dnf."""

    folder = "dnf"
    os_release = 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n'

    def real(self, tmp_path, repository):
        """The real dnf over the root: its options."""
        for folder in ("repos.d", "plugins"):
            (tmp_path / folder).mkdir()
        (tmp_path / "dnf.conf").write_text(CONFIGURATION.format(place=tmp_path))
        (tmp_path / "repos.d/cuda.repo").write_text(REPOSITORY.format(repository=repository))
        options = [
            f"--config={tmp_path}/dnf.conf",
            f"--installroot={self.root}",
            "--releasever=9",
            "--forcearch=x86_64",
            f"--setopt=cachedir={tmp_path}/cache",
            "--setopt=module_platform_id=platform:el9",
        ]
        options = {"dnf": options, "rpm": ["--root", str(self.root)]}
        return {"options": options, "repository": str(repository)}

    @property
    def transactions(self):
        """Scripts that dnf carried out, in order."""
        return [
            call[-1].splitlines() if "\n" in call[-1] else call[-1]
            for call in (one["call"] for one in self.answered())
            if "shell" in call and not {"--assumeno", "--downloadonly"} & set(call)
        ]


class AptHost(RecordedHost):
    """A host with apt, Ubuntu of a release. sources: names of folders below the repository."""

    folder = "apt"

    def __init__(self, release, sources, *arguments):
        self.os_release = UBUNTU.format(release=release)
        self.sources = sources
        super().__init__(*arguments)

    def real(self, tmp_path, repository):
        """The real apt and dpkg over the root: their options and environment."""
        for folder in (
            *(
                "etc/apt/preferences.d",
                "etc/apt/apt.conf.d",
                "etc/apt/sources.list.d",
                "var/lib/apt/lists/partial",
            ),
            *("var/cache/apt/archives/partial", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log/apt"),
        ):
            (self.root / folder).mkdir(parents=True)
        (self.root / "var/lib/dpkg/status").touch()
        lines = [f"deb [trusted=yes] file:{repository}/{name} ./\n" for name in self.sources]
        (self.root / "etc/apt/sources.list").write_text("".join(lines))
        (tmp_path / "apt.conf").write_text(APT.format(root=self.root))
        environment = {"APT_CONFIG": str(tmp_path / "apt.conf")}
        update = ["/usr/bin/apt-get", "-q", "update"]
        subprocess.run(
            update, check=True, capture_output=True, env={**os.environ, **environment}, timeout=120
        )
        options = {"dpkg": [f"--root={self.root}"], "dpkg-query": [f"--admindir={self.root}/var/lib/dpkg"]}
        return {"options": options, "environment": environment, "repository": str(repository)}

    @property
    def transactions(self):
        """What apt-get carried out, in order: the words from its verb on."""
        verbs, dry = {"install", "remove", "purge"}, {"--simulate", "--download-only"}
        calls = [one["call"] for one in self.answered() if one["call"][0] == "apt-get"]
        return [
            call[min(call.index(verb) for verb in verbs & set(call)) :]
            for call in calls
            if verbs & set(call) and not dry & set(call)
        ]
