"""The capabilities that the engine can give to containers, less those that reach the machine itself."""

from __future__ import annotations

from pathlib import Path

from boxwright.errors import UserError

#: The engine's own record of its process.
PID_FILE = Path("/var/run/docker.pid")

#: Linux capabilities in the order of their bits (capabilities(7), include/uapi/linux/capability.h).
#: Later ones (PERFMON, BPF, CHECKPOINT_RESTORE) are unknown to engines of 2020, and no host needs them.
CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
)
#: Never given to a simulated host: these reach the machine itself (its kernel modules, memory, clock, rules).
#: SYS_RESOURCE is left out so that a host is the same where the engine has it and where it has not.
WITHHELD = frozenset({"SYS_MODULE", "SYS_RAWIO", "SYS_TIME", "SYS_RESOURCE", "MAC_ADMIN", "MAC_OVERRIDE"})


def bounding_capabilities() -> list[str]:
    """The capabilities that the engine can give to a container, less those withheld from simulated hosts.

    Read from the engine's own process; from this one where the engine's cannot be found.
    """
    for process in (_engine_process(), "self"):
        if process and (bits := status_field(Path(f"/proc/{process}/status"), "CapBnd")):
            return capability_names(int(bits, 16))
    raise UserError("the capabilities of the container engine cannot be read", where="/proc/self/status")


def capability_names(bits: int) -> list[str]:
    """The names of the capabilities in a set such as CapBnd of /proc/PID/status, less the withheld ones."""
    return [name for bit, name in enumerate(CAPABILITIES) if bits >> bit & 1 and name not in WITHHELD]


def status_field(file: Path, name: str) -> str | None:
    """One field of a process's status file, or None when the process or the field is not there."""
    try:
        for line in file.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key == name:
                return value.strip()
    except OSError:  # the process ended meanwhile
        return None
    return None


def _engine_process() -> str | None:
    """The engine's process: by its pid file, else by its name; not one that runs inside a simulated host."""
    candidates = [PID_FILE.read_text(encoding="ascii").strip()] if PID_FILE.is_file() else []
    candidates += [path.name for path in Path("/proc").glob("[0-9]*")]
    for process in candidates:
        status = Path(f"/proc/{process}/status")
        if (
            status_field(status, "Name") == "dockerd"
            and len((status_field(status, "NSpid") or "").split()) == 1
        ):
            return process
    return None
