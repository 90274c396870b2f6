"""What provisioning would change, as a person would say it; nothing where the host is as declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxwright.facts.model import Release
from boxwright.facts.parsers import nvidia_smi
from boxwright.planner.case import Case, Host
from boxwright.planner.rules.words import gb


def changes(host: Host, cases: Sequence[Case]) -> tuple[str, ...]:
    """The differences between declaration and host. Without facts of a host: none are known."""
    if not host.facts.recorded:
        return ()
    return (
        *_driver(host),
        *_runtime(host),
        *_tuning(host),
        *(change for case in cases for change in _deployment(case)),
        *_gone(host),
    )


def _driver(host: Host) -> Iterator[str]:
    declared, driver = host.box.driver, host.facts.driver
    if not declared.manage:
        return
    wanted = declared.version or declared.branch
    whole = nvidia_smi.version(wanted)
    target = f"version {wanted}" if declared.version else f"branch {wanted}"
    if driver.state in ("absent", "nouveau"):
        has = "nouveau" if driver.nouveau else "none"
        yield f"driver {has} -> {target}" + (", reboot" if driver.nouveau else "")
    elif nvidia_smi.version(driver.installed_version or driver.version or "")[: len(whole)] != whole:
        yield f"driver {driver.installed_version or driver.version} -> {target}, reboot"
    elif driver.state == "mismatch":
        yield f"driver {driver.loaded_version} is loaded and {driver.installed_version} installed: reboot"
    elif driver.state == "installed":
        yield f"driver {driver.installed_version} is loaded"
    toolkit = declared.cuda_toolkit
    if toolkit and f"cuda-toolkit-{toolkit.replace('.', '-')}" not in driver.packages:
        yield f"CUDA toolkit {toolkit} is installed"


def _runtime(host: Host) -> Iterator[str]:
    docker = host.facts.docker
    if docker.version is None:
        yield "Docker Engine is installed"
    elif not docker.running:
        yield "Docker Engine is started"
    if docker.toolkit_version is None:
        yield "NVIDIA container toolkit is installed"


def _tuning(host: Host) -> Iterator[str]:
    tuning, applied = host.box.tuning, host.facts.tuning
    cards = [card.card for card in host.cards if not card.card.lost]
    if tuning.max_clock_mhz is not None:
        wanted = f"{tuning.min_clock_mhz}–{tuning.max_clock_mhz} MHz"  # noqa: RUF001
        low, high = applied.get("min_clock_mhz"), applied.get("max_clock_mhz")
        if (low, high) != (tuning.min_clock_mhz, tuning.max_clock_mhz):
            yield f"clock lock {f'{low or 0}–{high} MHz' if high else 'none'} -> {wanted}"  # noqa: RUF001
    if tuning.power_limit_w is not None:
        for card in cards:
            if card.power.limit is None or abs(card.power.limit - tuning.power_limit_w) > 1:
                has = f"{card.power.limit:g} W" if card.power.limit is not None else "default"
                yield f"power limit of card {card.index} {has} -> {tuning.power_limit_w:g} W"
    if tuning.persistence and any(card.persistence is not True for card in cards):
        yield "persistence on"


def _deployment(case: Case) -> Iterator[str]:
    name, model = case.deployment.name, case.model
    current = next(
        (release for release in case.host.facts.releases if release.deployment == name and release.current),
        None,
    )
    for source, _ in case.sources:
        size = source.download_bytes
        if size and not (case.is_made and source is model):
            what = "weights" if source is model else "a draft model"
            yield f"{name}: {gb(size)} of {what} are fetched from {source.repo}"
    if case.deployment.quantize and not case.is_made:
        yield f"{name}: {model.name} is quantized to {case.deployment.quantize.bits} bits"
    if current is None:
        yield f"{name}: first release, image {case.deployment.image}"
        return
    record = current.record
    differences = [
        f"image {record.get('image')} -> {case.deployment.image}"
        if record.get("image") != case.deployment.image
        else "",
        "" if _same_weights(case, current) else "weights",
        "options" if _command(record.get("command")) != _command(case.command.argv) else "",
        "environment" if record.get("env") != dict(case.command.env) else "",
        f"port {record.get('bind')}:{record.get('port')} -> {case.deployment.bind}:{case.deployment.port}"
        if (record.get("bind"), record.get("port")) != (case.deployment.bind, case.deployment.port)
        else "",
    ]
    told = ", ".join(difference for difference in differences if difference)
    if told:
        yield f"{name}: {told}, new release"


def _same_weights(case: Case, current: Release | None) -> bool:
    if current is None:
        return False
    record, drafter = current.record, case.draft_model
    unknown = drafter is not None and drafter.directory is None
    if not unknown and record.get("drafter_directory") != (drafter.directory if drafter else None):
        return False
    return case.model.revision is None or record.get("revision") == case.model.revision


def _command(value: object) -> tuple[str, ...]:
    return tuple(str(word) for word in value) if isinstance(value, (list, tuple)) else ()


def _gone(host: Host) -> Iterator[str]:
    names = {deployment.name for deployment in host.box.deployments}
    for release in host.facts.releases:
        if release.current and release.deployment not in names:
            yield f"{release.deployment}: not declared any more, stopped"
