"""What the cards did over a span of time, out of readings that were taken beside it."""

import os
import stat
import time

import pytest
from ansible.module_utils import card_samples
from ansible.module_utils.card_samples import Sample, Sampler, summary

UUID = "GPU-0"


def sample(at, power=100.0, card=0, clock=2100, reasons=0, uuid=UUID):
    return Sample(at, card, uuid, clock, 10501, power, 60, 99, reasons)


def test_energy_is_the_power_over_the_span_and_not_beyond_it():
    """100 W before and after, 300 W in the middle of two seconds: the line between is straight."""
    samples = [sample(0, 100), sample(1, 300), sample(2, 100)]
    [card] = summary(samples, 0, 2)
    assert card["energy_j"] == pytest.approx(400)
    [half] = summary(samples, 0.5, 1.5)
    assert half["energy_j"] == pytest.approx(250)


def test_before_the_first_and_after_the_last_reading_power_is_as_there():
    [card] = summary([sample(10, 200), sample(11, 200)], 8, 12)
    assert card["energy_j"] == pytest.approx(800)


def test_a_card_that_tells_no_power_has_no_energy():
    [card] = summary([sample(0, None), sample(1, None)], 0, 1)
    assert (card["energy_j"], card["power_w"]) == (None, None)
    assert card["clock_mhz"] == {"low": 2100, "median": 2100, "high": 2100}


def test_only_readings_within_the_span_count_for_clocks_and_reasons():
    samples = [
        sample(0, clock=300, reasons=1),
        sample(1, reasons=4),
        sample(2, reasons=0),
        sample(3, clock=300),
    ]
    [card] = summary(samples, 0.9, 2.1)
    assert card["readings"] == 2
    assert card["clock_mhz"]["low"] == 2100
    assert card["reasons"] == {"0x4": 0.5}


def test_a_span_between_two_readings_takes_the_nearest():
    [card] = summary([sample(0, clock=300), sample(1, clock=1900)], 0.7, 0.8)
    assert (card["readings"], card["clock_mhz"]["median"]) == (1, 1900)


def test_cards_are_told_apart_and_none_is_told_of_none():
    found = summary([sample(0), sample(0, card=1, uuid="GPU-1", power=50)], 0, 1)
    assert [(one["index"], one["energy_j"]) for one in found] == [(0, 100), (1, 50)]
    assert summary([], 0, 1) == []


def test_a_card_that_does_not_tell_its_reasons():
    [card] = summary([sample(0, reasons=None)], 0, 1)
    assert card["reasons"] is None


@pytest.mark.parametrize("old", [False, True])
def test_the_cards_of_the_release_are_read_in_the_words_of_either_driver(tmp_path, monkeypatch, old):
    script = """#!/bin/sh
case "$*" in *clocks_event_reasons*) %s;; esac
echo '0, GPU-0, 1905 MHz, 10251 MHz, 301.50 W, 71, 98 %%, 0x0000000000000004'
echo '1, GPU-1, 210 MHz, 405 MHz, 20.00 W, 40, 0 %%, 0x0000000000000001'
"""
    refusal = "echo 'Field \"clocks_event_reasons.active\" is not a valid field to query.'; exit 2"
    program = tmp_path / "nvidia-smi"
    program.write_text(script % (refusal if old else ":"))
    program.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    began = time.monotonic()
    with Sampler(["GPU-0"], interval_s=0.05) as sampler:
        until = time.monotonic() + 20
        while len(sampler.samples) < 2 and time.monotonic() < until:
            time.sleep(0.02)
    assert len(sampler.samples) >= 2
    [card] = summary(sampler.samples, began, time.monotonic())
    assert card["uuid"] == "GPU-0"
    assert card["power_w"]["median"] == 301.5
    assert card["reasons"] == {"0x4": 1.0}


def test_a_box_without_cards_is_not_asked(monkeypatch):
    monkeypatch.setattr(card_samples, "run", lambda *_, **__: pytest.fail("asked"))
    with Sampler([]) as sampler:
        pass
    assert sampler.samples == []
