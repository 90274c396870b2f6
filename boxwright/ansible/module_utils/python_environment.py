"""A Python virtual environment of its own for a tool on a host: made once, found again by its stamp."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple
from urllib.parse import urlsplit

from ansible.module_utils import apt, dnf, package_manager, store_room
from ansible.module_utils.command import Result, read, run, write
from ansible.module_utils.package_locks import LockTimeout, wait_for_locks

STAMP = ".boxwright-environment.json"
#: Prefix of the paths of os-release and of further Pythons; tests point it at a directory of theirs.
ROOT = ""
#: The oldest Python that the tools' releases are made for.
LEAST = (3, 10)
#: Pythons beside the distribution's own (RHEL 9's is 3.9), the better ones first; the first can be installed.
#: https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/9/html/installing_and_using_dynamic_programming_languages
OTHERS = ((3, 12), (3, 11), (3, 13), (3, 14))


class EnvironmentFailed(Exception):
    """The environment cannot be made; the text says why and what to do."""


class Python(NamedTuple):
    """An interpreter that environments are made with."""

    path: str
    version: Tuple[int, ...]


def interpreter() -> Optional[Python]:
    """The host's own Python where it is new enough, else another that is there; None without any."""
    if sys.version_info[:2] >= LEAST:
        return Python(sys.executable, tuple(sys.version_info[:2]))
    places = (Python("%s/usr/bin/python%d.%d" % (ROOT, *version), version) for version in OTHERS)
    return next((one for one in places if os.access(one.path, os.X_OK)), None)


class Step(NamedTuple):
    """One call of pip. options: its own, beside those that every call gets."""

    requirements: List[str]
    options: List[str]


class Wanted(NamedTuple):
    """What an environment is made of.

    index_url: package index, "" for the host's own; size: bytes it takes; steps: pip's calls in order.
    """

    path: str
    steps: List[Step]
    constraints: List[str]
    index_url: str = ""
    extra_index_url: str = ""
    proxy: str = ""
    size: int = 0
    timeout_s: int = 3600

    @property
    def python(self) -> str:
        """The environment's interpreter."""
        return os.path.join(self.path, "bin", "python")

    def digest(self) -> str:
        """What the environment depends on, as one hash: packages and interpreter, not their origin."""
        with_python = interpreter() or Python("", ())
        parts = [self.steps, self.constraints, os.path.realpath(with_python.path), with_python.version]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def installed(wanted: Wanted) -> Optional[Dict[str, str]]:
    """Versions by package name if the environment is there as wanted; None when it must be made."""
    text = read(os.path.join(wanted.path, STAMP))
    try:
        stamp = json.loads(text or "")
        right = stamp["digest"] == wanted.digest() and os.path.exists(wanted.python)
        return dict(stamp["packages"]) if right else None
    except (ValueError, KeyError, TypeError):
        return None


def ensure(wanted: Wanted, stage: Callable[[str], None], lock_timeout: float = 3600) -> Dict[str, str]:
    """Have the environment there; versions by package name. Raises EnvironmentFailed."""
    name = os.path.basename(wanted.path)
    try:
        with store_room.alone(
            wanted.path + ".lock",
            lambda holder: stage("%s makes the %s environment" % (holder, name)),
            lock_timeout,
        ):
            packages = installed(wanted)
            return packages if packages is not None else _make(wanted, name, stage)
    except store_room.BusyError as error:
        raise EnvironmentFailed(
            "%s: %s; see what it does, end it and run again" % (wanted.path, error)
        ) from error


def _make(wanted: Wanted, name: str, stage: Callable[[str], None]) -> Dict[str, str]:
    short = store_room.shortage([store_room.Need(wanted.path, wanted.size, "the %s environment" % name)], 0)
    if short:
        raise EnvironmentFailed(short)
    stage("making the %s environment" % name)
    python = _have_venv(wanted.proxy, stage).path
    # Without its stamp it counts as unfinished, so an interruption from here on leads to a new start.
    shutil.rmtree(wanted.path, ignore_errors=True)
    done = run([python, "-m", "venv", wanted.path], timeout=300)
    if done.rc != 0:
        raise EnvironmentFailed(
            "%s cannot make a virtual environment in %s: %s" % (python, wanted.path, last_lines(done.text))
        )
    for step in wanted.steps:
        stage("installing %s" % ", ".join(step.requirements[:3]))
        _pip(wanted, step)
    packages = _packages(wanted)
    stamp = {"digest": wanted.digest(), "packages": packages}
    write(os.path.join(wanted.path, STAMP), json.dumps(stamp, indent=1, sort_keys=True) + "\n")
    return packages


def _have_venv(proxy: str, stage: Callable[[str], None]) -> Python:
    """A Python that environments can be made with, installed where need be. Raises EnvironmentFailed."""
    found = interpreter()
    if found is None and package_manager.name(ROOT) == "dnf":
        found = _install_python(proxy, stage)
    if found is None:
        raise EnvironmentFailed(
            "%s is Python %d.%d, and the tools need %d.%d or newer; install one as /usr/bin/python%d.%d, "
            "then run again" % (sys.executable, *sys.version_info[:2], *LEAST, *OTHERS[0])
        )
    if run([found.path, "-c", "import venv, ensurepip"], timeout=60).rc == 0:
        return found
    if found.path != sys.executable or not shutil.which("apt-get"):
        raise EnvironmentFailed(
            "%s has no venv module; install the distribution's package for it, then run again" % found.path
        )
    stage("installing python3-venv")
    # The versioned name as well: the host's python3 may not be the one that python3-venv is for.
    package = "python%d.%d-venv" % sys.version_info[:2]
    argv = ["apt-get", "-q", "-y", *apt.OPTIONS, *apt.way(proxy), "-o", "DPkg::Lock::Timeout=300"]
    for words in (["install", package], ["update"], ["install", package]):
        done = run(argv + words, timeout=900, env=apt.environment(proxy or None))
        if done.rc == 0 and words[0] == "install":
            return found
    raise EnvironmentFailed("%s cannot be installed: %s" % (package, apt.reasons(done)))


def _install_python(proxy: str, stage: Callable[[str], None]) -> Optional[Python]:
    """A newer Python beside the distribution's own, as its AppStream has it. Raises EnvironmentFailed."""
    package = "python%d.%d" % OTHERS[0]
    stage("installing %s" % package)
    env = {"http_proxy": proxy, "https_proxy": proxy} if proxy else {}
    try:
        wait_for_locks(300, dnf.LOCKS, dnf.holder)
    except LockTimeout as error:
        raise EnvironmentFailed("%s cannot be installed now: %s" % (package, error)) from None
    done = run(["dnf", "-y", "-q", "install", package], timeout=900, env=env)
    if done.rc != 0:
        raise EnvironmentFailed(
            "the host's own Python is %d.%d, the tools need %d.%d or newer, and %s cannot be installed: %s"
            % (*sys.version_info[:2], *LEAST, package, dnf.reasons(done))
        )
    return interpreter()


def pip_environment(wanted: Wanted) -> Dict[str, str]:
    """Settings of pip. The index goes this way, not as an argument: its address may hold a password."""
    settings = {
        "PIP_NO_INPUT": "1",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_COLOR": "1",
        "PIP_PROGRESS_BAR": "off",
        "PIP_RETRIES": "3",
    }
    if wanted.index_url:
        settings["PIP_INDEX_URL"] = wanted.index_url
    if wanted.extra_index_url:
        settings["PIP_EXTRA_INDEX_URL"] = wanted.extra_index_url
    # Whoever declares an index without TLS means it; pip wants to be told once more.
    plain = {
        urlsplit(url).netloc.rpartition("@")[2]
        for url in (wanted.index_url, wanted.extra_index_url)
        if urlsplit(url).scheme == "http"
    }
    if plain:
        settings["PIP_TRUSTED_HOST"] = " ".join(sorted(plain))
    if wanted.proxy:
        # Not PIP_PROXY, which goes before no_proxy.
        settings.update(
            dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), wanted.proxy)
        )
    return settings


def _pip(wanted: Wanted, step: Step) -> None:
    descriptor, constraints = tempfile.mkstemp(prefix="boxwright-constraints-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write("".join(line + "\n" for line in wanted.constraints))
        argv = [
            wanted.python,
            "-m",
            "pip",
            "install",
            "--no-compile",
            "--constraint",
            constraints,
            *step.options,
        ]
        done = run([*argv, "--", *step.requirements], timeout=wanted.timeout_s, env=pip_environment(wanted))
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(constraints)
    if done.rc != 0:
        raise EnvironmentFailed(pip_failure(wanted, step, done))


def pip_failure(wanted: Wanted, step: Step, done: Result) -> str:
    """What went wrong with pip, in a sentence that a person can act on."""
    text = done.text
    for url in (wanted.index_url, wanted.extra_index_url, wanted.proxy):
        secret = urlsplit(url).netloc.rpartition("@")[0]
        text = text.replace(secret, "***") if secret else text
    index = urlsplit(wanted.index_url)
    where = (
        "%s://%s%s" % (index.scheme, index.netloc.rpartition("@")[2], index.path) if index.scheme else "PyPI"
    )
    what = "pip cannot install %s on this host" % ", ".join(step.requirements)
    if done.rc == 124:
        return "%s: it did not end within %d s" % (what, wanted.timeout_s)
    if "No space left on device" in text:
        return "%s: the disk is full; free room in %s and run again" % (what, os.path.dirname(wanted.path))
    if re.search(r"CERTIFICATE_VERIFY_FAILED|SSLError|certificate verify failed", text):
        return (
            "%s: the certificate of %s is not trusted here; declare its authority in box_ca, or install it "
            "on the host (/usr/local/share/ca-certificates, update-ca-certificates; with dnf "
            "/etc/pki/ca-trust/source/anchors, update-ca-trust) and run again" % (what, where)
        )
    if re.search(r"Name or service not known|Temporary failure in name resolution|Failed to resolve", text):
        return "%s: the name of %s does not resolve; see the host's DNS, box_pip_index_url, box_proxy" % (
            what,
            where,
        )
    if re.search(
        r"Connection refused|Max retries|ConnectTimeout|Network is unreachable|ProxyError|Read timed out",
        text,
    ):
        return "%s: %s cannot be reached; see the host's network, box_pip_index_url, box_proxy" % (
            what,
            where,
        )
    missing = re.search(r"No matching distribution found for (\S+)", text)
    if missing:
        version = (interpreter() or Python("", LEAST)).version
        return (
            "%s: %s has no %s for Python %d.%d; declare an index that has it (box_pip_index_url) or other "
            "versions (the role's …_packages)" % (what, where, missing.group(1), version[0], version[1])
        )
    return "%s: %s" % (what, last_lines(text))


def last_lines(text: str, most: int = 6) -> str:
    """The last lines that say something."""
    told = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in told if line.startswith("ERROR")]
    return "\n".join((errors or told)[-most:])


def _packages(wanted: Wanted) -> Dict[str, str]:
    script = (
        "import importlib.metadata as m, json;"
        "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
    )
    done = run([wanted.python, "-I", "-c", script], timeout=120)
    try:
        packages: Any = json.loads(done.stdout)
        return {str(name): str(version) for name, version in packages.items()}
    except ValueError:
        raise EnvironmentFailed("%s does not run: %s" % (wanted.python, last_lines(done.text))) from None
