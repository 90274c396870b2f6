"""Whose words stand in a log of several programs: the engine's and of what it stands on, or another one's.

A pasted journal, or Compose's log of several services, holds what others say about themselves. What is known
by its name is told by it; of any other name an engine that speaks in the same log tells: it is another one's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from boxwright.facts.parsers.log_lines import Line

#: Words of the names of an engine and of what it stands on.
_OURS = frozenset(
    {"boxwright", "vllm", "sglang", "ray", "docker", "dockerd", "containerd", "podman", "conmon", "kubelet",
     "nvidia", "dcgm", "nouveau", "kernel", "dkms", "modprobe"}
)  # fmt: skip
#: Names of programs and services that run beside an engine, and are none.
_OTHERS = (
    "alertmanager", "alloy", "anacron", "apache2", "apt", "audit", "auditd", "avahi", "bluetoothd", "caddy",
    "certbot", "chroma", "chronyd", "clamd", "cloud-init", "cockpit", "colord", "comfyui", "cron", "crond",
    "cupsd", "dbus", "dhclient", "dnf", "dnsmasq", "dovecot", "elasticsearch", "exim4", "fail2ban", "firefox",
    "firewalld", "flowise", "fwupd", "gdm", "gdm3", "gitea", "gitlab", "gnome", "grafana", "haproxy", "httpd",
    "influxd", "jellyfin", "jenkins", "jupyter", "jupyterlab", "kafka", "langfuse", "langflow", "libreoffice",
    "libvirtd", "lightdm", "litellm", "loki", "mariadb", "mariadbd", "milvus", "minio", "modemmanager",
    "mongod", "mongodb", "mosquitto", "mysql", "mysqld", "n8n", "named", "networkd", "networkmanager",
    "nextcloud", "nginx", "node-exporter", "ntpd", "ollama", "open-webui", "opensearch", "openvpn",
    "packagekit", "packagekitd", "php-fpm", "plasmashell", "plexmediaserver", "pipewire", "polkitd",
    "postfix", "postgres", "postgresql", "prometheus", "promtail", "pulseaudio", "qdrant", "rabbitmq",
    "redis", "redis-server", "resolved", "rsyslogd", "sddm", "smartd", "smbd", "snapd", "squid", "ssh",
    "sshd", "sudo", "syncthing", "tailscaled", "thermald", "timesyncd", "traefik", "udisksd", "ufw",
    "unattended-upgrade", "unattended-upgrades", "upowerd", "uptime-kuma", "valkey", "watchtower",
    "weaviate", "wireplumber", "wpa-supplicant", "xorg", "xrdp", "zabbix",
)  # fmt: skip
#: Of which unit systemd speaks.
_OF_UNIT = re.compile(
    r"^(?:Failed to start |Dependency failed for |Start(?:ing|ed) )?"
    r"(?P<unit>[\w@.:\\-]{1,200})\.(?:service|scope|socket|timer)(?:: | - |\.$|\.\.\.$)"
)
_ENDING = re.compile(r"\.(?:service|scope|slice)$")


class Speakers:
    """Who speaks in a log. Lines that name no program are the engine's."""

    def __init__(self, engines: Iterable[Line] = (), *, named: bool = True, own_unit: bool = False) -> None:
        """engines: lines that only an engine says. named: whether names tell anything in this log; own_unit:
        whether systemd speaks of a unit of Boxwright's in it.
        """
        self._named, self._own_unit = named, own_unit
        self._engines = {line.program for line in engines} - {"", "systemd"}

    def other(self, line: Line) -> str:
        """The name of another program that a line is of, or of whose unit systemd speaks; else nothing."""
        if not self._named:
            return ""
        name, sure = line.program, bool(self._engines)
        if name in ("", "systemd"):
            unit = _OF_UNIT.match(line.text.strip())
            if unit is None:
                return ""
            # What runs in a unit speaks by a name of its own: only Boxwright's are known to be called alike.
            name, sure = unit.group("unit"), self._own_unit
        words = _words(name)
        if not _OURS.isdisjoint(words.split("-")):
            return ""
        if any(f"-{one}-" in f"-{words}-" for one in _OTHERS) or (sure and name not in self._engines):
            return _ENDING.sub("", name)
        return ""


def _words(name: str) -> str:
    """A name's words: `postgresql@16-main.service` and `shop_postgres_1` are both of PostgreSQL's."""
    return "-".join(re.findall(r"[a-z0-9]+", _ENDING.sub("", name).lower()))
