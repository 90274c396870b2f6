"""The rigs that hosts can have, and what a wrong file says."""

import pytest

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.lab import rigs


@pytest.mark.parametrize(
    ("name", "cards", "device", "memory"),
    [
        ("rtx5090", 1, "2b85", 32607),
        ("rtx5090x2", 2, "2b85", 32607),
        ("rtx3090x2", 2, "2204", 24576),
        ("rtx4090x2", 2, "2684", 24564),
    ],
)
def test_the_reference_rigs(name, cards, device, memory):
    rig = rigs.load(name, "lab1")
    assert len(rig.cards) == cards
    assert {(card.pci_vendor, card.pci_device, card.memory_total) for card in rig.cards} == {
        ("10de", device, memory)
    }


def test_every_rig_loads_and_its_cards_make_sense():
    for name in rigs.names():
        for card in rigs.load(name, "h").cards:
            assert card.power_min <= card.power_default <= card.power_max
            assert 0 < card.memory_reserved < card.memory_total / 20


def test_a_host_made_anew_has_the_same_cards_and_another_host_others():
    first, again, other = (rigs.load("rtx5090x2", host) for host in ("a", "a", "b"))
    assert first == again
    identities = {card.uuid for card in first.cards} | {card.uuid for card in other.cards}
    assert len(identities) == 4
    assert [card.bus_id for card in first.cards] == ["0000:01:00.0", "0000:02:00.0"]


def test_no_card_at_all_is_a_rig():
    assert rigs.load("none", "h").cards == ()


def test_an_unknown_rig_names_the_known_ones():
    with pytest.raises(UserError, match="no rig is called 'rtx9090'") as error:
        rigs.load("rtx9090", "h")
    assert error.value.status == EXIT_BAD_INPUT
    assert "rtx5090" in error.value.ways_out[0]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("power_max: 600", "power_max: lots", "cards.rtx5090: power_max must be a whole number, not 'lots'"),
        ("    power_max: 600\n", "", "cards.rtx5090: power_max is missing"),
        ("power_max: 600", "power_max: 600\n    colour: green", "cards.rtx5090: colour is not known"),
        ("{cards: [rtx5090], link: PHB", "{cards: [rtx6090], link: PHB", "no card is called 'rtx6090'"),
        ("{cards: [rtx5090], link: PHB", "{cards: rtx5090, link: PHB", "must be a list"),
        ("{cards: [rtx5090], link: PHB, nouveau: true}", "{cards: [], link: PHB}", "nouveau"),
        ("rigs:\n", "rigs: 3\nother:\n", "rigs must be a mapping"),
    ],
)
def test_a_wrong_file_says_where_and_what(tmp_path, before, after, message):
    text = rigs.RIGS_FILE.read_text(encoding="utf-8")
    assert before in text
    wrong = tmp_path / "rigs.yml"
    wrong.write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(UserError) as error:
        rigs.load("rtx5090", "h", wrong)
    assert message in error.value.what
    assert error.value.where == str(wrong)
