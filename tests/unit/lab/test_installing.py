"""Programs that are missing are installed once, however many images need them at the same time."""

from concurrent.futures import ThreadPoolExecutor

from boxwright.lab import programs


def test_installed_by_the_first_who_needs_it(monkeypatch):
    there, installed = set(), []

    def install(packages, report, *, why, otherwise):
        installed.extend(packages)
        there.update(packages)

    monkeypatch.setattr(programs, "find", lambda name: f"/usr/bin/{name}" if name in there else None)
    monkeypatch.setattr(programs, "install_packages", install)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: programs.program("maker", "maker", print, "it makes"), range(8)))
    assert found == ["/usr/bin/maker"] * 8
    assert installed == ["maker"]


def test_apt_waits_for_another_one(monkeypatch):
    commands = []
    monkeypatch.setattr(programs.shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    monkeypatch.setattr(programs, "as_root", lambda argv, **_: commands.append(argv) or "")
    monkeypatch.setattr(programs, "can_be_root", lambda: True)
    programs.install_packages(["thing"], lambda line: None, why="it is needed", otherwise="do without")
    assert all("DPkg::Lock::Timeout=300" in argv for argv in commands)
    assert commands[-1][-1] == "thing"
