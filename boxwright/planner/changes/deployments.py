"""Weights, images and releases: what model_weights, model_quantize and engine would change."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from boxwright.facts.model import Release
from boxwright.planner import quantizer
from boxwright.planner.case import Case, Host
from boxwright.planner.changes import drift
from boxwright.planner.changes.change import Change
from boxwright.planner.model_source import quantized_directory
from boxwright.planner.rules import words
from boxwright.planner.rules.words import gb, listed
from boxwright.planner.settings import drain_seconds

WEIGHTS, QUANTIZE, ENGINE = "model_weights", "model_quantize", "engine"
#: An estimate to plan a break by, no promise: compiling and capturing graphs, and weights at the pace of a
#: SATA disk.
START_S, LOAD_BYTES_PER_S = 90, 400_000_000
#: Options named one by one; more are counted.
MOST_OPTIONS = 4


def changes(case: Case) -> Iterator[Change]:
    """A deployment's changes in the order in which they are made."""
    name = case.deployment.name
    yield from _weights(case)
    yield from _image(case)
    current = _current(case.host, name)
    if current is None:
        yield Change(ENGINE, "release", None, case.deployment.image, name, note="first release")
        return
    found = _differences(case, current.record)
    for number, (subject, was, to) in enumerate(found):
        note = "in the same release" if number else "new release"
        seconds = None if number else start_seconds(case)
        yield Change(ENGINE, subject, was, to, name, interrupts=not number, seconds=seconds, note=note)
    receipt = case.host.facts.kept.receipts.get(ENGINE)
    if receipt and drift.key_of(name) in receipt.differs:
        to = "declared" if case.deployment.api_key else "made on the box"
        yield Change(ENGINE, "API key", "another", to, name, interrupts=not found,
                     seconds=None if found else start_seconds(case))  # fmt: skip


def gone(host: Host) -> Iterator[Change]:
    """Deployments that are declared no more."""
    names = {deployment.name for deployment in host.box.deployments}
    for release in host.facts.releases:
        if release.current and release.deployment not in names:
            image = str(release.record.get("image") or "running")
            yield Change(ENGINE, "deployment", image, None, release.deployment, note="stopped and taken away")


def start_seconds(case: Case) -> int:
    """About how long the engine takes until it answers, in seconds."""
    return START_S + round((case.weight_bytes or 0) / LOAD_BYTES_PER_S)


def _current(host: Host, name: str) -> Release | None:
    return next((one for one in host.facts.releases if one.deployment == name and one.current), None)


def _weights(case: Case) -> Iterator[Change]:
    name, wanted = case.deployment.name, case.deployment.quantize
    for source, _ in case.sources:
        served = source is case.model
        if source.complete or source.path or (served and case.is_made) or _fetched_before(case, served):
            continue
        size = source.download_bytes
        to = f"{gb(size)} of {source.repo}" if size else str(source.repo)
        yield Change(WEIGHTS, "weights" if served else "draft model", None, to, name, note="fetched")
    if wanted and not case.is_made:
        to = f"{wanted.bits} bits by {quantizer.titles().get(wanted.method, wanted.method)}"
        yield Change(QUANTIZE, "quantization", None, to, name, note=_effort(case))


def _effort(case: Case) -> str:
    """What quantizing takes, in words."""
    needs = case.quantizing
    return f"takes {words.effort(needs)}" if needs else ""


def _fetched_before(case: Case, served: bool) -> bool:
    """Whether an earlier deployment has the same weights, or draft model: they are fetched once."""
    own = case.deployment.model if served else case.deployment.speculative.model
    return own is not None and any(
        own == (quantizer.model_of(other, case.host.catalog) if served else other.speculative.model)
        for other in case.host.box.deployments[: case.place]
    )


def _image(case: Case) -> Iterator[Change]:
    seen, first = case.image_facts, _first_with(case)
    if (seen is None or not seen.present) and first:
        size = f"{gb(seen.size)} of " if seen and seen.size else ""
        yield Change(
            ENGINE,
            "image on the host",
            None,
            f"{size}{case.deployment.image}",
            case.deployment.name,
            note="fetched",
        )


def _first_with(case: Case) -> bool:
    """Whether no earlier deployment of the box has the same image: it is fetched once."""
    return not any(other.image == case.deployment.image for other in case.host.box.deployments[: case.place])


def _differences(case: Case, record: Mapping[str, object]) -> list[tuple[str, str | None, str | None]]:
    """What differs from the release that serves: subject, before, after."""
    declared = case.deployment
    found: list[tuple[str, str | None, str | None]] = []
    if record.get("image") != declared.image:
        found.append(("image", *_images(_text(record.get("image")), declared.image)))
    elif moved := _moved(case, record):
        found.append(("image", *moved))
    weights = _weights_difference(case, record)
    if weights:
        found.append(("weights", *weights))
    drafter = case.draft_model.directory if case.draft_model else None
    known = case.draft_model is None or drafter is not None
    was = _text(record.get("drafter_directory"))
    if known and was != drafter:
        found.append(("draft model", was and _short(was), drafter and _short(drafter)))
    options = _options(record.get("command"), case.command.argv)
    if options:
        found.append(("options", *options))
    environment = _environment(record.get("env"), case.command.env)
    if environment:
        found.append(("environment", *environment))
    if (record.get("bind"), record.get("port")) != (declared.bind, declared.port):
        was = f"{record.get('bind')}:{record.get('port')}"
        found.append(("address", was, f"{declared.bind}:{declared.port}"))
    was_outgoing = record.get("network") is None
    if "template" in record and was_outgoing != declared.outgoing:
        found.append(("outgoing connections", _yes(was_outgoing), _yes(declared.outgoing)))
    guard = record.get("guard")
    was_open = guard.get("open") if isinstance(guard, Mapping) else None
    if isinstance(was_open, list) and was_open != sorted(declared.open_paths):
        found.append(("open paths", " ".join(map(str, was_open)), " ".join(sorted(declared.open_paths))))
    return [*found, *_cards(case, record), *_unit(case, record)]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _moved(case: Case, record: Mapping[str, object]) -> tuple[str, str] | None:
    """The digests of an image that is to be fetched under the tag that serves already."""
    seen, was = case.image_facts, record.get("image_digest")
    if seen is None or seen.present or not seen.digest or not isinstance(was, str) or was == seen.digest:
        return None
    return _digest(was), _digest(seen.digest)


def _digest(whole: str) -> str:
    return whole.removeprefix("sha256:")[:12]


def _images(was: str | None, to: str) -> tuple[str | None, str]:
    """Both images; of one repository only what follows its name."""
    repository, colon, tag = to.rpartition(":")
    if was and colon and was.startswith(f"{repository}:") and "@" not in was + to:
        return was.removeprefix(f"{repository}:"), tag
    return was, to


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _weights_difference(case: Case, record: Mapping[str, object]) -> tuple[str | None, str] | None:
    """Another commit, another directory, another quantization."""
    model, wanted = case.model, case.deployment.quantize
    directory = model.directory
    if wanted and directory:
        directory = quantized_directory(directory, wanted)
    was = record.get("model_directory")
    if was is None and model.revision is not None and record.get("revision") != model.revision:
        return _text(record.get("revision")), model.revision
    if was is None or directory is None or was == directory:
        return None
    return _short(str(was)), _short(directory)


def _short(directory: str) -> str:
    """`org--name/0123456789ab` of a directory of the store; the directory itself elsewhere."""
    place, _, name = directory.rpartition("/")
    commit, made, how = name.partition("-")
    if len(commit) != 40 or not place:
        return directory
    return f"{place.rpartition('/')[2].replace('--', '/')}@{commit[:12]}{made}{how}"


def _options(was: object, argv: Sequence[str]) -> tuple[str | None, str | None] | None:
    """The options that differ, as they were and as they will be."""
    before, after = _pairs(_words(was)), _pairs(argv)
    differ = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if not differ:
        return None
    return _some(before, differ), _some(after, differ)


def _words(value: object) -> list[str]:
    return [str(word) for word in value] if isinstance(value, (list, tuple)) else []


def _pairs(argv: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """`--option` -> its values; what stands before the first option has the name of nothing."""
    found: dict[str, tuple[str, ...]] = {}
    name = ""
    for word in argv:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            found[name] = (*found.get(name, ()), *([value] if value else []))
        else:
            found[name] = (*found.get(name, ()), word)
    return found


def _some(pairs: Mapping[str, tuple[str, ...]], names: Sequence[str]) -> str | None:
    """The named options as they stand on a command line, those that are there."""
    there = [shlex.join([name, *pairs[name]] if name else pairs[name]) for name in names if name in pairs]
    more = len(there) - MOST_OPTIONS
    return (" ".join(there[:MOST_OPTIONS]) + (f" and {more} more" if more > 0 else "")) or None


def _environment(was: object, env: Mapping[str, str]) -> tuple[str | None, str | None] | None:
    """The names of variables that differ; their values may be secret."""
    before = {str(key): str(value) for key, value in was.items()} if isinstance(was, Mapping) else {}
    differ = [name for name in {**before, **env} if before.get(name) != env.get(name)]
    if not differ:
        return None
    sides = [listed(name for name in differ if name in side) or None for side in (before, env)]
    return sides[0], f"another {sides[1]}" if sides[0] == sides[1] else sides[1]


def _cards(case: Case, record: Mapping[str, object]) -> list[tuple[str, str | None, str | None]]:
    """Another choice of cards; a release whose plan is not recorded tells none."""
    plan = record.get("plan")
    was = plan.get("gpus") if isinstance(plan, Mapping) else None
    if not isinstance(was, (list, tuple)) or list(was) == list(case.indices):
        return []
    return [("cards", listed(map(str, was)) or None, listed(map(str, case.indices)) or None)]


def _unit(case: Case, record: Mapping[str, object]) -> list[tuple[str, str | None, str | None]]:
    """Settings of the service, as far as they are declared."""
    found: list[tuple[str, str | None, str | None]] = []
    for name in ("stop_timeout_s", "restart_limit", "restart_window_s"):
        wanted = case.host.box.settings.get(f"engine_{name}")
        if name == "stop_timeout_s" and isinstance(wanted, int):
            wanted += drain_seconds(case.host.box)
        if wanted is not None and name in record and record[name] != wanted:
            found.append((name, _text(record[name]), _text(wanted)))
    return found
