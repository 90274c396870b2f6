"""dnf and rpm for tests: as they once answered, or, to record anew, the real ones over a root of their own.

A new recording: apt-get install dnf dnf-plugins-core rpm createrepo-c (or the same on a Fedora), then as root
    BOXWRIGHT_RECORD=1 pytest tests/modules/host/test_dnf_packages.py tests/modules/host/test_rocky.py
"""

import json
import os
from pathlib import Path

from host_doubles import World

RECORDED = Path(__file__).with_name("recorded") / "dnf"
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


class DnfHost:
    """A host with dnf. name: of the recording. repository: the packages' directory, for a new recording."""

    def __init__(self, name, root, tmp_path, monkeypatch, repository):
        self.file, self.root = RECORDED / f"{name}.json", root
        (root / "etc").mkdir()
        (root / "etc/os-release").write_text('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n')
        if RECORDING:
            self._real(tmp_path, repository)
            state = {"answers": [], "options": self.options}
        else:
            state = {"answers": json.loads(self.file.read_text())}
        source = "recording" if RECORDING else "replayed"
        self.world = World(tmp_path, monkeypatch, source, root=str(root), **state)

    def _real(self, tmp_path, repository):
        for folder in ("repos.d", "plugins"):
            (tmp_path / folder).mkdir()
        (tmp_path / "dnf.conf").write_text(CONFIGURATION.format(place=tmp_path))
        (tmp_path / "repos.d/cuda.repo").write_text(REPOSITORY.format(repository=repository))
        self.options = [
            f"--config={tmp_path}/dnf.conf",
            f"--installroot={self.root}",
            "--releasever=9",
            "--forcearch=x86_64",
            f"--setopt=cachedir={tmp_path}/cache",
            "--setopt=module_platform_id=platform:el9",
        ]

    def keep(self):
        """Write what was recorded, where something was."""
        if RECORDING:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(self.world["answers"], indent=1) + "\n")

    @property
    def transactions(self):
        """Scripts that dnf carried out, in order."""
        return [
            call[-1].splitlines() if "\n" in call[-1] else call[-1]
            for call in (one["call"] for one in self._answered())
            if "shell" in call and not {"--assumeno", "--downloadonly"} & set(call)
        ]

    def _answered(self):
        return self.world["answers"][: len(self.world["calls"])]
