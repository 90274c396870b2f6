"""Ansible's own reading of an inventory: which hosts there are and which variables each of them gets.

Nothing here judges; it asks ansible-core in this process, quietly, and turns its answers into plain values.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from boxwright.spec.sources import LockedVault
from boxwright.spec.values import Opaque

_JINJA = ("{{", "{%", "{#")
#: What Ansible tells every host of all the others; nobody declares it, and for many hosts it is long.
_OF_THE_INVENTORY = ("groups", "hostvars")
#: Larger files are no declarations: reading them would take minutes.
MOST_BYTES = 4_000_000
_CONFIGURATION = Path(__file__).resolve().parents[2] / "ansible.cfg"


class MergeError(Exception):
    """Ansible could not read or template something; the message is its own, on one line."""


class Merger:
    """One reading of one inventory. paths: its files or directories, beside which the vars directories lie.

    ansible-core is imported only here, when an inventory is read: it costs a third of a second.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        # The project's configuration counts wherever the command is called from.
        if _CONFIGURATION.exists():
            os.environ.setdefault("ANSIBLE_CONFIG", str(_CONFIGURATION))
        with _quiet():
            from ansible.inventory.manager import InventoryManager
            from ansible.parsing.dataloader import DataLoader
            from ansible.vars.manager import VariableManager

            _find_plugins()
            self._loader = DataLoader()
            self._no_vault, secrets = _vault_secrets(self._loader)
            self._loader.set_vault_secrets(secrets)
            _share_vault_secrets(secrets)
            self._inventory = InventoryManager(
                self._loader, sources=[str(path) for path in paths], parse=False
            )
            # Without a version Ansible adds no variables of the working directory.
            self._variables = VariableManager(self._loader, self._inventory, version_info={})

    def read_text(self, file: Path) -> tuple[str, bool]:
        """A file's text, decrypted when it is a vault. Raises OSError, UnicodeDecodeError or LockedVault."""
        from ansible.errors import AnsibleError
        from ansible.parsing.vault import is_encrypted

        content = _content(file)
        if not is_encrypted(content):
            return content.decode("utf-8-sig"), False
        if self._no_vault:
            raise LockedVault(self._no_vault)
        try:
            return self._loader.get_text_file_contents(str(file)), True
        except AnsibleError as error:
            raise LockedVault("no known password opens it") from error

    def add_source(self, file: Path, *, is_yaml: bool) -> str | None:
        """Take the hosts of one file in; gives what was wrong, or None. is_yaml: it is no INI file."""
        from ansible.errors import AnsibleError

        with _quiet() as said:
            try:
                if self._inventory.parse_source(str(file)):
                    return None
            except AnsibleError as error:
                return _reason(said.getvalue(), is_yaml=is_yaml) or one_line(error)
            return _reason(said.getvalue(), is_yaml=is_yaml) or "Ansible finds no inventory in it"

    def finish(self) -> None:
        """Settle groups after the last source."""
        with _quiet():
            self._inventory.reconcile_inventory()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of all hosts, in the order of the inventory."""
        return tuple(str(name) for name in self._inventory.hosts)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of all groups."""
        return tuple(str(name) for name in self._inventory.groups)

    def groups_of(self, host: str) -> tuple[str, ...]:
        """The host's groups, those whose variables win last."""
        groups = self._inventory.get_host(host).get_groups()
        ordered = sorted(groups, key=lambda group: (group.depth, group.priority, group.name))
        return tuple(str(group.name) for group in ordered)

    def directory_of(self, host: str) -> Path:
        """The directory of the inventory that lists the host."""
        return Path(str(self._inventory.get_host(host).vars.get("inventory_dir") or "."))

    def variables(self, host: str) -> dict[str, object]:
        """The host's merged variables as they are written. Raises MergeError."""
        merged = self._merged(host)
        return {str(name): _plain(value) for name, value in merged.items() if name not in _OF_THE_INVENTORY}

    def resolve(self, host: str, names: Sequence[str]) -> tuple[dict[str, object], dict[str, str]]:
        """Some variables with their templates filled in and vaults opened, and what failed, each by name."""
        from ansible.errors import AnsibleError
        from ansible.template import Templar

        merged = self._merged(host)
        values: dict[str, object] = {}
        failed: dict[str, str] = {}
        with _quiet():
            self._loader.set_basedir(str(self.directory_of(host)))
            templar = Templar(loader=self._loader, variables=merged)
            for name in names:
                try:
                    values[name] = _plain(templar.template(merged[name]), opened=True)
                except AnsibleError as error:
                    failed[name] = one_line(error)
                except RecursionError:
                    failed[name] = "refers to itself"
        return values, failed

    def locked(self) -> str | None:
        """Why encrypted values cannot be opened, None when there is a password for them."""
        return self._no_vault

    def _merged(self, host: str) -> Mapping[str, Any]:
        from ansible.errors import AnsibleError

        with _quiet():
            try:
                merged: Mapping[str, Any] = self._variables.get_vars(host=self._inventory.get_host(host))
            except AnsibleError as error:
                raise MergeError(one_line(error)) from error
        return merged


def _content(file: Path) -> bytes:
    """A file's bytes. Raises OSError, also where it is too large, or a pipe that would be waited for."""
    status = file.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    if status.st_size > MOST_BYTES:
        size = f"{status.st_size / 1e6:.0f} MB"
        raise OSError(errno.EFBIG, f"it has {size}, and no declaration has over {MOST_BYTES // 10**6} MB")
    return file.read_bytes()


def _find_plugins() -> None:
    """Let templates find Ansible's plugins by their full names, as ansible-playbook does at its start."""
    from ansible.plugins.loader import init_plugin_loader
    from ansible.utils.collection_loader import AnsibleCollectionConfig

    if AnsibleCollectionConfig.collection_finder is None:
        init_plugin_loader()


def one_line(error: Exception) -> str:
    """An Ansible error's own words without the excerpts and hints that follow them."""
    text = str(getattr(error, "message", "") or error)
    return " ".join(text.split("\n\n")[0].split())[:300]


def _plain(value: object, *, opened: bool = False) -> object:
    """Ansible's tagged values as plain ones. opened: templates are filled in, what looks like one is none."""
    from ansible.parsing.vault import EncryptedString
    from ansible.template import is_trusted_as_template

    if isinstance(value, EncryptedString):
        return str(value) if opened else _opaque(value)
    if isinstance(value, Mapping):
        return {_key(key): _plain(item, opened=opened) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, opened=opened) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if not opened and is_trusted_as_template(value) and any(mark in value for mark in _JINJA):
            return Opaque("template", str(value))
        return str(value)
    return next((kind(value) for kind in (int, float) if isinstance(value, kind)), value)


def _opaque(value: object) -> Opaque:
    """An encrypted value, and whether a known password opens it."""
    from ansible.errors import AnsibleError

    try:
        str(value)
    except AnsibleError:
        return Opaque("locked")
    return Opaque("vault")


def _key(key: object) -> object:
    return str(key) if isinstance(key, str) else key


class _OfThread:
    """A stream that keeps what the thread that made it says; of any other thread it is the stream before."""

    def __init__(self, kept: io.StringIO, before: TextIO) -> None:
        self._kept, self._before, self._thread = kept, before, threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kept if threading.get_ident() == self._thread else self._before, name)


#: Ansible's inventory is made for one thread, and there is one standard output for all of them.
_one_at_a_time = threading.RLock()


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    """Keep Ansible's warnings off the terminal: what matters of them is told as a problem.

    What other threads say meanwhile is not kept from it.
    """
    said = io.StringIO()
    with (
        _one_at_a_time,
        contextlib.redirect_stderr(cast(TextIO, _OfThread(said, sys.stderr))),
        contextlib.redirect_stdout(cast(TextIO, _OfThread(said, sys.stdout))),
    ):
        yield said


def _reason(text: str, *, is_yaml: bool) -> str | None:
    """The reason that Ansible gives for a source that it could not parse.

    It tries its plugins in turn, and each that fails warns: only that of the file's form knows the reason.
    """
    opening = "Failed to parse inventory with "
    reasons = [
        part.removeprefix(opening)
        for part in map(str.strip, " ".join(text.split()).split("[WARNING]: "))
        if part.startswith(opening)
    ]
    if is_yaml:
        # `auto` knows the files that name a plugin of their own, and comes before `yaml`.
        own = [one for one in reasons if not one.startswith("'ini'") and "no root 'plugin' key" not in one]
        reasons = own[:1] or reasons
    if not reasons:
        return None
    return reasons[-1].split(": ", 1)[-1].split(opening)[0].split("Origin:")[0].strip()[:300]


def _vault_secrets(loader: Any) -> tuple[str | None, list[tuple[str, Any]]]:
    """The configured vault passwords, and why there is none. Passwords are never asked for here."""
    from ansible import constants
    from ansible.errors import AnsibleError
    from ansible.parsing.vault import get_file_vault_secret

    setting = constants.config.get_config_value
    identities = [str(entry) for entry in setting("DEFAULT_VAULT_IDENTITY_LIST") or []]
    if password_file := setting("DEFAULT_VAULT_PASSWORD_FILE"):
        identities.append(f"{constants.DEFAULT_VAULT_IDENTITY}@{password_file}")
    secrets: list[tuple[str, Any]] = []
    asked = "its password would have to be asked for, which happens nowhere here"
    reason = asked if setting("DEFAULT_ASK_VAULT_PASS") else "no vault password is known"
    for identity in identities:
        name, _, file = identity.rpartition("@")
        if file in ("prompt", "prompt_ask_vault_pass"):
            reason = asked
            continue
        try:
            secret = get_file_vault_secret(filename=file, vault_id=name, loader=loader)
            secret.load()
        except AnsibleError as error:
            reason = f"its password cannot be read: {one_line(error)}"
            continue
        secrets.append((name or str(constants.DEFAULT_VAULT_IDENTITY), secret))
    return (None if secrets else reason), secrets


def _share_vault_secrets(secrets: list[tuple[str, Any]]) -> None:
    """Give the passwords to Ansible's lazily opened strings, which look for them in one place."""
    from ansible.parsing.vault import VaultSecretsContext

    current = VaultSecretsContext.current(optional=True)
    if current is None:
        VaultSecretsContext.initialize(VaultSecretsContext(secrets))
    else:
        current.secrets = secrets
