"""The package repositories: the same bytes each time, signed, and with the vendor's dependencies."""

from __future__ import annotations

import gzip
import hashlib
import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

from boxwright.lab.gpu import repository
from boxwright.lab.gpu.packages import distribution, driver

CUDA = "compute/cuda/repos/debian13/x86_64"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Both repositories, with a key of this test."""
    base = tmp_path_factory.mktemp("repository")
    repository.build(base / "www", base / "key.asc")
    return base / "www"


def paragraphs(text: str) -> list[dict[str, str]]:
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.strip().split("\n\n")]


def contents(tree: Path) -> dict[str, str]:
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tree.rglob("*")
        if path.is_file()
    }


def verify(directory: Path, *arguments: str) -> int:
    keyring = directory / "cuda-archive-keyring.gpg"
    # gpg itself, which the lab needs anyway: gpgv is a package of its own that Debian 13 leaves out.
    with tempfile.TemporaryDirectory() as home:
        options = ["--homedir", home, "--no-default-keyring", "--keyring", str(keyring), "--verify"]
        return subprocess.run(["gpg", *options, *arguments], capture_output=True, check=False).returncode


def test_the_same_sources_and_key_give_the_same_bytes(tree):
    repository.build(tree.parent / "again", tree.parent / "key.asc")
    assert contents(tree) == contents(tree.parent / "again")


def test_signatures_hold_and_a_changed_index_does_not(tree, tmp_path):
    directory = tree / CUDA
    assert verify(directory, str(directory / "InRelease")) == 0
    assert verify(directory, str(directory / "Release.gpg"), str(directory / "Release")) == 0
    changed = tmp_path / "Release"
    changed.write_bytes((directory / "Release").read_bytes().replace(b"NVIDIA", b"NVIDEA"))
    assert verify(directory, str(directory / "Release.gpg"), str(changed)) != 0


def test_release_covers_the_index_and_the_index_the_packages(tree):
    directory = tree / CUDA
    release = (directory / "Release").read_text()
    assert "Origin: NVIDIA\n" in release
    index = (directory / "Packages").read_bytes()
    assert hashlib.sha256(index).hexdigest() in release
    assert gzip.decompress((directory / "Packages.gz").read_bytes()) == index
    for package in paragraphs(index.decode()):
        content = (directory / package["Filename"]).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), str(len(content))) == (
            package["SHA256"],
            package["Size"],
        )


@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("nvidia-driver-cuda", {"570.195.03-1", "580.95.05-1", "580.105.08-1", "595.71.05-1"}),
        ("nvidia-kernel-open-dkms", {"570.195.03-1", "580.95.05-1", "580.105.08-1", "595.71.05-1"}),
        ("nvidia-driver-pinning-580", {"580-5"}),
        ("nvidia-container-toolkit", {"1.18.1-1", "1.19.0-1"}),
        ("cuda-toolkit-12-8", {"12.8.1-1"}),
    ],
)
def test_versions_of_a_package(tree, name, versions):
    found = {
        package["Version"]
        for package in paragraphs((tree / CUDA / "Packages").read_text())
        if package["Package"] == name
    }
    assert found == versions


def test_every_dependency_of_a_driver_package_is_in_the_repository_in_that_version(tree):
    packages = paragraphs((tree / CUDA / "Packages").read_text())
    known = {(package["Package"], package["Version"]) for package in packages}
    exact = [need for package in packages for need in package.get("Depends", "").split(", ") if "(= " in need]
    assert len(exact) > 40
    for need in exact:
        name, version = need.rstrip(")").split(" (= ")
        assert (name, version) in known


def test_open_and_proprietary_modules_exclude_each_other(tree):
    conflicts = {
        package["Package"]: package["Conflicts"]
        for package in paragraphs((tree / CUDA / "Packages").read_text())
        if "Conflicts" in package
    }
    assert conflicts["nvidia-kernel-open-dkms"] == "nvidia-kernel-dkms"
    assert conflicts["nvidia-kernel-dkms"] == "nvidia-kernel-open-dkms"


def test_a_package_is_what_dpkg_reads(tree, ar_member):
    deb = (tree / CUDA / "nvidia-persistenced_580.105.08-1_amd64.deb").read_bytes()
    assert ar_member(deb, "debian-binary") == b"2.0\n"
    with tarfile.open(fileobj=io.BytesIO(ar_member(deb, "control.tar.gz"))) as control:
        assert {"./control", "./md5sums", "./postinst", "./prerm", "./postrm"} <= set(control.getnames())
    with tarfile.open(fileobj=io.BytesIO(ar_member(deb, "data.tar.gz"))) as data:
        assert "./usr/lib/systemd/system" in data.getnames()
        assert {entry.uname for entry in data.getmembers()} == {"root"}


def test_the_distributions_driver_is_of_one_version_and_shares_names_with_the_vendors(tree):
    ours = {package.name: package for package in distribution.packages()}
    vendors = {package.name for package in driver.packages()}
    assert {package.version for package in ours.values()} == {"550.163.01-2"}
    assert set(ours) - vendors == {"nvidia-smi", "nvidia-alternative", "nvidia-open-kernel-dkms"}
    for package in ours.values():
        for need in package.control.get("Depends", "").split(", "):
            name, _, version = need.partition(" (= ")
            assert not version or (name in ours and version == "550.163.01-2)"), need


def test_the_toolkit_repository_has_its_key_armored(tree):
    assert (
        (tree / "libnvidia-container/gpgkey").read_text().startswith("-----BEGIN PGP PUBLIC KEY BLOCK-----")
    )
    assert (tree / "libnvidia-container/stable/deb/amd64/InRelease").exists()


def test_the_tree_is_readable_for_a_web_server(tree):
    assert {path.stat().st_mode & 0o777 for path in tree.rglob("*") if path.is_file()} == {0o644}


def test_without_gpg_the_way_out_is_named(tmp_path, monkeypatch):
    from boxwright.errors import UserError

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as failure:
        repository.build(tmp_path / "www", tmp_path / "key.asc")
    assert "apt-get install gnupg" in str(failure.value)
