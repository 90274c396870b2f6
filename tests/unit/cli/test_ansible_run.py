"""What a playbook's run is given."""

import os
from pathlib import Path

from boxwright.cli.ansible_run import environment


def test_vault_passwords_are_found_from_any_directory(monkeypatch, tmp_path):
    """A playbook runs in the project's own directory, and the user named the file from another one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "secret/pw")
    monkeypatch.setenv("ANSIBLE_VAULT_IDENTITY_LIST", "dev@pw, prod@/etc/pw,ask@prompt")
    given = environment(Path("report.json"))
    assert given["ANSIBLE_VAULT_PASSWORD_FILE"] == str(tmp_path / "secret" / "pw")
    assert given["ANSIBLE_VAULT_IDENTITY_LIST"] == f"dev@{tmp_path}/pw,prod@/etc/pw,ask@prompt"


def test_nothing_is_made_of_nothing(monkeypatch):
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)
    assert "ANSIBLE_VAULT_PASSWORD_FILE" not in environment(Path("report.json"))
    assert "ANSIBLE_VAULT_PASSWORD_FILE" not in os.environ
