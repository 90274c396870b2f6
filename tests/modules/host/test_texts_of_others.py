"""Files of others that the roles read or switch off, in forms that are seldom and legal."""

import pytest
from ansible.module_utils import apt_texts, card_limits, next_kernel

STANZA = "Types: deb\nURIs: https://x.example/\nSuites: a\nComponents: b\n"


@pytest.mark.parametrize("enabled", ["Enabled: yes\n", "enabled: yes\n", "Enabled:\n yes\n", ""])
@pytest.mark.parametrize("first", [True, False])
def test_a_definition_is_off_whatever_it_said_before(enabled, first):
    """apt heeds the last of two fields of a name."""
    text = apt_texts.without(enabled + STANZA if first else STANZA + enabled, True, ["https://x.example"])
    fields = [line for line in text.splitlines() if line.lower().startswith("enabled")]
    assert fields == ["Enabled: no"]
    assert "yes" not in text
    assert "URIs: https://x.example/" in text


@pytest.mark.parametrize(
    "copy", [".old", ".bak", ".orig", ".dpkg-bak", ".dpkg-new", ".rpmsave", ".efi.signed", "~"]
)
def test_a_copy_of_a_kernel_is_none_to_boot(tmp_path, monkeypatch, copy):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "boot").mkdir()
    for name in ("vmlinuz-6.12.48-amd64", f"vmlinuz-6.12.48-amd64{copy}", "vmlinuz-6.1.0-1-amd64"):
        (tmp_path / "boot" / name).touch()
    assert next_kernel.named(str(tmp_path)) == "6.12.48-amd64"


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        "null",
        "7",
        '{"cards": []}',
        '{"cards": {"GPU-1": 5}}',
        '{"unsupported": {"GPU-1": 1}}',
        "[" * 100_000,
    ],
)
def test_receipts_that_are_damaged_stand_for_nothing(text):
    assert card_limits.receipts_of(text) == {}


def test_receipts_that_are_whole_do():
    text = '{"cards": {"GPU-1": {"power_limit_w": 450}}, "unsupported": {"GPU-1": ["clocks"]}}'
    assert card_limits.receipts_of(text)["cards"] == {"GPU-1": {"power_limit_w": 450}}
