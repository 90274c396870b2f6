"""What the modules of a role keep on a host is watched by its receipt: no drift of it is passed over."""

import fnmatch
from pathlib import Path

import pytest
import yaml
from ansible.module_utils import (
    apt_source,
    cdi_refresh,
    dnf_source,
    docker_proxy,
    docker_unit,
    registry_logins,
    versionlock,
)

from boxwright.ansible.modules import docker_daemon_config, nvidia_module, port_access

ROLES = Path(__file__).resolve().parents[2] / "roles"
CONFIG = "/etc/boxwright/"


def source(name):
    apt, dnf = apt_source.AptSource, dnf_source.DnfSource
    of_apt, of_dnf = apt({"name": name}, ""), dnf({"name": name}, "")
    return [of_apt.keyring, of_apt.source, of_apt.pins, of_dnf.keyring, of_dnf.source]


KEPT = {
    "nvidia_driver": [
        *source("boxwright-cuda"),
        apt_source.AptSource({"name": "boxwright-cuda"}, "").policy,
        *nvidia_module.FILES,
        nvidia_module.PENDING,
        versionlock.LIST,
        "/etc/apt/preferences",
        "/usr/src/linux-headers-6.12.1-amd64",
    ],
    "container_runtime": [
        *source("boxwright-docker"),
        *source("boxwright-container-toolkit"),
        docker_proxy.DROP_IN,
        CONFIG + docker_daemon_config.PROXY_FILE,
        docker_daemon_config.PENDING,
        docker_unit.DEFAULT_CONFIG,
        CONFIG + registry_logins.RECORD,
        "/root/.docker/config.json",
        f"{registry_logins.CERTIFICATES}/hub.example/{registry_logins.OUR_CERTIFICATE}",
        f"{cdi_refresh.UNITS}/{cdi_refresh.OURS}",
        f"{cdi_refresh.UNITS}/{cdi_refresh.VENDOR}.d/boxwright.conf",
        versionlock.LIST,
        "/etc/yum.repos.d/docker-ce.repo",
        "/etc/apt/preferences",
        "/etc/cdi/rival.yaml",
        "/proc/driver/nvidia/gpus/0000:01:00.0",
    ],
}
FOUND = [(role, path) for role, paths in KEPT.items() for path in paths]


def patterns(role):
    variables = yaml.safe_load((ROLES / role / "vars" / "main.yml").read_text())
    watched = variables[f"_{role}_watched"]
    found = [one for kind in ("files", "beside", "listings") for one in watched[kind]]
    for one in found:
        text = one.replace("{{ box_config_dir | default('/etc/boxwright') }}", "/etc/boxwright")
        name = text.removeprefix("{{ ").removesuffix(" }}")
        text = variables.get(name, text)
        yield text.replace("{{ box_config_dir | default('/etc/boxwright') }}", "/etc/boxwright")


@pytest.mark.parametrize(("role", "path"), FOUND, ids=[f"{role}:{path}" for role, path in FOUND])
def test_what_a_role_keeps_is_watched(role, path):
    assert any(fnmatch.fnmatchcase(path, one) for one in patterns(role))


def test_the_units_that_keep_ports_to_their_sources_are_watched():
    """The one that watches firewalld as well, also where firewalld comes only later."""
    variables = yaml.safe_load((ROLES / "engine" / "vars" / "main.yml").read_text())
    rules, watching = variables["_engine_access_units"]
    assert (rules, "-watch.service" in watching) == ("{{ _engine_access_unit }}", True)
    assert "_engine_access_units if box_allow_from" in variables["_engine_watched"]["units"]
    assert port_access.FIREWALLD in variables["_engine_watched"]["listings"]
