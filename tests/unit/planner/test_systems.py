"""The systems that the plan lets through are those that the roles have variables for, both ways."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from boxwright.catalog import choices, systems

ROLES = Path(__file__).resolve().parents[3] / "roles"
PLANNED = {f"{name}-{release}" for name, system in systems.load().items() for release in system.releases}


def variables(role: str, name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((ROLES / role / "vars" / f"{name}.yml").read_text()))


def test_the_driver() -> None:
    found = variables("nvidia_driver", "main")
    assert set(found["_nvidia_driver_supported"]) == PLANNED
    families = found["_nvidia_driver_families"]
    assert set(families) == set(systems.load())
    files = {path.stem for path in (ROLES / "nvidia_driver/vars").glob("*.yml")}
    assert files == {*families.values(), "main"}


def test_each_release_of_ubuntu_has_its_first_kernel() -> None:
    kernels = variables("nvidia_driver", "ubuntu")["_nvidia_driver_first_kernels"]
    assert set(kernels) == set(systems.load()["ubuntu"].releases)


def test_the_runtime() -> None:
    found = variables("container_runtime", "main")
    families = found["_container_runtime_families"]
    of_family = {f"{name}-{release}" for name in families for release in systems.load()[name].releases}
    assert {*found["_container_runtime_distribution_packages"], *of_family} == PLANNED
    # As the role joins them: the releases of Red Hat's family stand in a template.
    assert (
        "+ _container_runtime_families.keys() | map('regex_replace', '$', '-9')"
        in found["_container_runtime_supported"]
    )
    assert of_family == {f"{name}-9" for name in families}
    assert {path.stem for path in (ROLES / "container_runtime/vars").glob("*.yml")} == {
        *families.values(),
        "main",
    }


@pytest.mark.parametrize("role", sorted(path.name for path in ROLES.iterdir() if (path / "vars").is_dir()))
def test_no_other_role_has_files_by_distribution(role: str) -> None:
    """One that gets some is to be compared here."""
    files = {path.stem for path in (ROLES / role / "vars").glob("*.yml")}
    assert role in ("nvidia_driver", "container_runtime") or files == {"main"}


def test_the_readme_names_them() -> None:
    text = " ".join((ROLES.parent / "README.md").read_text().split())
    assert "Debian 12/13, Ubuntu 22.04/24.04, or RHEL, Rocky Linux or AlmaLinux 9" in text
    named = ["debian-12", "debian-13", "ubuntu-22.04", "ubuntu-24.04", "rhel-9", "rocky-9", "almalinux-9"]
    assert sorted(named) == sorted(PLANNED)


def test_branches_are_chosen_for_systems_that_there_are() -> None:
    assert set(choices.load().driver_branches) - {"default"} <= PLANNED
