"""From what a box is to what to declare of it: the best choice as a commented host file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from boxwright.catalog import Catalog
from boxwright.catalog import choices as catalog_choices
from boxwright.catalog.choices import CardLimits, Limit
from boxwright.facts.model import HostFacts
from boxwright.planner.cards import PlannedCard, of_host
from boxwright.planner.choice import Choice, declared
from boxwright.planner.recommend import Recommendation
from boxwright.planner.rules.driver import LOWEST_BRANCH
from boxwright.planner.rules.words import gb, listed
from boxwright.spec.host_file import HostFile, Setting, comment

#: Other choices that are named in the file.
OTHERS = 3
BRANCH = "nvidia_driver_branch"
DOCKER = "container_runtime_source"


def cards_of(facts: HostFacts, catalog: Catalog) -> dict[str, object]:
    """`box_gpus` for the cards that were found; empty when the catalog does not know one of them."""
    cards = of_host(facts, catalog)
    kinds = Counter(card.kind.id for card in cards if card.kind)
    if not cards or kinds.total() != len(cards):
        return {}
    groups = [{"model": kind, "count": count} for kind, count in kinds.items()]
    return {"box_gpus": groups[0] if len(groups) == 1 else groups}


def unknown_cards(facts: HostFacts, catalog: Catalog) -> tuple[PlannedCard, ...]:
    """Cards of which neither the catalog nor a driver tells the memory: nothing can be planned for them."""
    return tuple(card for card in of_host(facts, catalog) if card.usable_bytes is None)


def driver_branch(facts: HostFacts, catalog: Catalog) -> str:
    """The driver branch to declare: the one that is loaded where it will do, else the one to install."""
    choices = catalog_choices.load()
    loaded, needed = facts.driver.branch, _needed_branch(choices.images[0], facts, catalog)
    if facts.driver.state == "loaded" and loaded is not None and loaded >= needed:
        return str(loaded)
    branch = choices.driver_branch(facts.os.id, facts.os.version_id)
    return branch if not branch.isdigit() or int(branch) >= needed else str(needed)


def system_of(facts: HostFacts) -> dict[str, object]:
    """What the box's distribution makes necessary to declare."""
    return {DOCKER: "vendor"} if facts.os.manager == "dnf" else {}


def _needed_branch(image: str, facts: HostFacts, catalog: Catalog) -> int:
    """The least branch for an image and the box's cards."""
    cuda = catalog.images.identify(image).cuda
    kinds = [card.kind for card in of_host(facts, catalog) if card.kind]
    of_image = (catalog.images.driver_branch(cuda) if cuda else None) or LOWEST_BRANCH
    return max([LOWEST_BRANCH, of_image, *(kind.driver_branch for kind in kinds)])


def host_file(
    name: str,
    facts: HostFacts,
    catalog: Catalog,
    found: Recommendation,
    inherited: Mapping[str, object],
    schema: str = "",
) -> HostFile:
    """The file of a box that serves the best choice. inherited: variables that its groups give it already.

    schema: where editors find the schema of the variables, relative to the file; empty for none.
    Raises IndexError when nothing was found that fits.
    """
    best = found.choices[0]
    cards = of_host(facts, catalog)
    return HostFile(
        head=comment("head", name=name, cards=cards_text(cards), system=facts.os.name or facts.os.id),
        box=(
            *_cards(facts, catalog, cards),
            *_driver(facts, catalog, best, inherited),
            *_system(facts, inherited),
            *_limits(cards),
        ),
        deployment=tuple(_deployment(name, best, found, catalog, len(cards))),
        notes=tuple(_others(found)),
        schema=schema,
    )


def cards_text(cards: tuple[PlannedCard, ...]) -> str:
    """The cards in words: `2 x RTX 3090`."""
    counts = Counter(card.title for card in cards)
    return listed(f"{count} x {title}" if count > 1 else title for title, count in counts.items())


def _cards(facts: HostFacts, catalog: Catalog, cards: tuple[PlannedCard, ...]) -> Iterator[Setting]:
    known = cards_of(facts, catalog)
    if known:
        yield Setting("box_gpus", known["box_gpus"], comment("box_gpus"))
        return
    strangers = tuple(card for card in cards if card.kind is None)
    yield Setting("", None, comment("box_gpus_left_out", cards=cards_text(strangers)))


def _driver(
    facts: HostFacts, catalog: Catalog, best: Choice, inherited: Mapping[str, object]
) -> Iterator[Setting]:
    driver, image = facts.driver, best.deployment.image
    words = {"version": driver.version, "image": image, "needed": _needed_branch(image, facts, catalog)}
    if BRANCH not in inherited and inherited.get("nvidia_driver_manage") is not False:
        branch = driver_branch(facts, catalog)
        works = driver.state == "loaded" and driver.version is not None
        key = (
            "driver_none" if not works else "driver_stays" if branch == str(driver.branch) else "driver_newer"
        )
        yield Setting(BRANCH, branch, comment(key, **words))
    if driver.nouveau and "nvidia_driver_reboot" not in inherited:
        yield Setting("nvidia_driver_reboot", True, comment("driver_reboot"), offered=True)


def _system(facts: HostFacts, inherited: Mapping[str, object]) -> Iterator[Setting]:
    for name, value in system_of(facts).items():
        if name not in inherited:
            yield Setting(name, value, comment(name, system=facts.os.name or facts.os.id))


def _limits(cards: tuple[PlannedCard, ...]) -> Iterator[Setting]:
    """Power limit and clock lock, offered where every card is of one kind and its range is known."""
    kinds = {card.title for card in cards}
    if len(kinds) != 1:
        return
    card = cards[0]
    power, clocks, kind = card.card.power, card.card.clocks, card.kind
    seen = catalog_choices.limits().get(kind.id, CardLimits()) if kind else CardLimits()
    low = power.min or (kind.power_min_w if kind else None)
    high = power.max or (kind.power_max_w if kind else None)
    usual = power.default or (kind.power_default_w if kind else None)
    if low and high and usual:
        words = {"low": f"{low:g}", "high": f"{high:g} W", "default": f"{usual:g} W"}
        yield _limit("gpu_tuning_power_limit_w", "power", seen.power_w, int(usual), (low, high), words)
    most = clocks.max_graphics or (kind.clock_graphics_mhz if kind else None)
    if most:
        yield _limit(
            "gpu_tuning_max_clock_mhz", "clock", seen.clock_mhz, most, (0, most), {"high": f"{most:,} MHz"}
        )


def _limit(
    name: str, key: str, seen: Limit | None, usual: int, span: tuple[float, float], words: Mapping[str, str]
) -> Setting:
    """The offered setting: with the value that somebody ran, where the card takes it, else its default."""
    if seen is None or not span[0] <= seen.value <= span[1]:
        return Setting(name, usual, comment(key, **words), offered=True)
    told = comment(f"{key}_seen", value=seen.value, why=seen.why, **words)
    return Setting(name, seen.value, told, offered=True)


def _deployment(
    name: str, best: Choice, found: Recommendation, catalog: Catalog, cards: int
) -> Iterator[Setting]:
    values = declared(best.deployment)
    comments = _comments(best, found, catalog, cards)
    for key, value in values.items():
        yield Setting(key, value, comments.get(key, ""))
    if "bind" not in values:
        yield Setting("bind", "0.0.0.0", comment("bind", name=name), offered=True)


def _comments(best: Choice, found: Recommendation, catalog: Catalog, cards: int) -> dict[str, str]:
    case, told = best.case, {}
    entry, size, image = case.model.entry, case.model.download_bytes, case.image
    if entry and size:
        about = "" if case.model.exact or entry.weights.bytes else "about "
        told["model"] = comment("model", title=entry.title, repo=entry.repo, size=f"{about}{gb(size)}")
    needed = catalog.images.driver_branch(image.cuda) if image.cuda else None
    if needed:
        told["image"] = comment("image", cuda=image.cuda, needed=max(needed, LOWEST_BRANCH))
    if len(case.cards) < cards:
        told["gpus"] = comment("gpus_of_several")
    layout = case.ledger.layout if case.ledger else None
    if best.context and case.ledger and layout:
        pool = case.ledger.pool
        low, high = (layout.tokens(size, best.context) for size in (pool.low, pool.high))
        told["context"] = comment("context", sure=f"{best.context:,}", low=f"{low:,}", high=f"{high:,}")
    else:
        told["context"] = comment("context_open")
    told["concurrency"] = comment("concurrency", held=best.sequences, sequence=f"{found.wish.sequence:,}")
    if best.deployment.kv_cache == "fp8":
        told["kv_cache"] = comment("kv_cache")
    drafts = best.deployment.speculative.method
    if drafts in ("mtp", "dflash2") and best.decode:
        told["speculative"] = comment(drafts, low=f"{best.decode.low:.0f}", high=f"{best.decode.high:.0f}")
    told["port"] = comment("port", taken=8000)
    return told


def _others(found: Recommendation) -> Iterator[str]:
    """The best choices of other models, in a line each."""
    names = {str(found.choices[0].deployment.model)}
    others = []
    for choice in found.choices:
        if str(choice.deployment.model) not in names:
            names.add(str(choice.deployment.model))
            others.append(choice)
    if others:
        yield comment("others")
    for choice in others[:OTHERS]:
        drafts = choice.deployment.speculative
        words = [f"model: {choice.deployment.model}", f"kv_cache: {choice.deployment.kv_cache}"]
        if drafts.method != "none":
            words.append(f"speculative: {{method: {drafts.method}, tokens: {drafts.tokens}}}")
        words.append(f"context: {choice.context or 'auto'}")
        yield "  " + ", ".join(words)
