"""One deployment with everything that is known about it: what rules, ledger and command look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from boxwright.catalog import Catalog, Drafter, reading
from boxwright.catalog.architecture import Architecture
from boxwright.catalog.images import ImageInfo
from boxwright.catalog.purpose import TEXT
from boxwright.engines import engine as engines
from boxwright.engines.command import Command
from boxwright.engines.engine import Engine
from boxwright.engines.request import Request
from boxwright.engines.settings import Settings
from boxwright.facts.model import HostFacts, Image, leading_number
from boxwright.planner import cards as host_cards
from boxwright.planner import drafters, memory, model_source, quantizer, settings
from boxwright.planner.cards import PlannedCard
from boxwright.planner.kv_pool import Pool
from boxwright.planner.memory import Ledger
from boxwright.planner.model_source import ModelSource
from boxwright.spec.box import Box, Deployment


@dataclass(frozen=True)
class Host:
    """A box with its facts, the catalog and its cards.

    revisions, drafter_revisions: deployment -> locked commit of its model, of its draft model.
    """

    box: Box
    facts: HostFacts
    catalog: Catalog
    cards: tuple[PlannedCard, ...]
    revisions: Mapping[str, str]
    drafter_revisions: Mapping[str, str]

    @property
    def driver_branch(self) -> int | None:
        """The driver branch that will run: the declared one, or what is there when it is not managed."""
        driver = self.box.driver
        if not driver.manage:
            return self.facts.driver.branch
        return leading_number(driver.upstream or driver.branch)


@dataclass(frozen=True)
class Case:
    """A deployment.

    place: in box_deployments. declared: as it stands there; deployment: with what `quantize: {method: auto}`
    means. indices: of the cards it gets; cards: those of them that are there.

    cuda: of the image, as it says itself or by its tag. quantized_bytes: weights after quantizing on the
    host. draft_model: a second model that drafts, None without one; drafter: its numbers. pool: None while
    the geometry is unknown, or its cache, which unknown_cache names. ledgers: of each card whose memory is
    known; ledger: of the one that ends first. context: tokens, None where left to the engine.

    An encoder keeps nothing of a sequence: it has ledgers, and no pool.
    """

    host: Host
    place: int
    declared: Deployment
    deployment: Deployment
    model: ModelSource
    image: ImageInfo
    image_facts: Image | None
    cuda: str | None
    indices: tuple[int, ...]
    cards: tuple[PlannedCard, ...]
    settings: Settings
    draft_model: ModelSource | None
    drafter: Drafter | None
    pool: Pool | None
    unknown_cache: str | None
    ledgers: tuple[Ledger, ...]
    context: int | None
    command: Command

    @property
    def engine(self) -> Engine:
        """The engine that serves it."""
        return engines.of(self.deployment.engine)

    @property
    def architecture(self) -> Architecture | None:
        """The model's geometry."""
        return self.model.architecture

    @property
    def ledger(self) -> Ledger | None:
        """The memory of the card that ends first, None while none is known."""
        return memory.limiting(self.ledgers)

    @property
    def sources(self) -> tuple[tuple[ModelSource, str], ...]:
        """The models that it is made of, each with where it is declared below the deployment."""
        draft = ((self.draft_model, "speculative.model"),) if self.draft_model else ()
        return ((self.model, "model"), *draft)

    @property
    def path(self) -> str:
        """Where it is declared."""
        return f"box_deployments[{self.place}]"

    @property
    def weight_bytes(self) -> int | None:
        """Bytes that the engine loads, after quantizing where that is asked for."""
        return served_bytes(self.deployment, self.model)

    @property
    def is_made(self) -> bool:
        """Whether the quantized checkpoint that is asked for lies on the host, every byte recorded."""
        wanted, source = self.deployment.quantize, self.model.directory
        if wanted is None or source is None:
            return False
        directory = model_source.quantized_directory(source, wanted)
        return any(
            one.origin == "made" and one.directory == directory and one.complete
            for one in self.host.facts.models
        )

    @property
    def quantizing(self) -> quantizer.Needs | None:
        """What making its checkpoint takes; None where none is made, or not enough is known."""
        architecture, source, result = self.architecture, self.model.weight_bytes, self.weight_bytes
        if self.deployment.quantize is None or self.is_made or not (architecture and source and result):
            return None
        host = self.host
        cards = () if host.box.settings.get("model_quantize_device") == "cpu" else host.cards
        return quantizer.needs(architecture, source, result, host.box.settings, cards, host.facts.cpus)

    @property
    def peer_to_peer(self) -> bool:
        """Whether the cards may copy to each other: cards for data centres, not GeForce."""
        return peer_to_peer(self.cards)


def peer_to_peer(cards: tuple[PlannedCard, ...]) -> bool:
    """Whether cards may copy to each other without a test: none of them is a GeForce."""
    return not any(card.kind.geforce for card in cards if card.kind)


def served_bytes(deployment: Deployment, model: ModelSource) -> int | None:
    """Bytes of the weights that the engine loads, None where unknown."""
    wanted = deployment.quantize
    if wanted is None or model.quantization.method is not None or model.architecture is None:
        halved = model.wide and model.weight_bytes is not None and model.quantization.method is None
        return (model.weight_bytes or 0) // 2 if halved else model.weight_bytes
    body = model_source.estimated_bytes(model.architecture, wanted.bits, wanted.group_size)
    return body + model.vision_bytes + model.mtp_bytes


def host_of(
    box: Box,
    facts: HostFacts,
    catalog: Catalog,
    revisions: Mapping[str, str],
    drafter_revisions: Mapping[str, str],
) -> Host:
    """The box with its cards recognised."""
    return Host(box, facts, catalog, host_cards.of_host(facts, catalog), revisions, drafter_revisions)


def cases(host: Host) -> tuple[Case, ...]:
    """Every deployment of the box."""
    assigned = host_cards.assign(host.box, host.cards)
    return tuple(
        _case(host, place, deployment, assigned.get(place, ()))
        for place, deployment in enumerate(host.box.deployments)
    )


def _case(host: Host, place: int, declared: Deployment, indices: tuple[int, ...]) -> Case:
    catalog = host.catalog
    deployment = quantizer.with_published(declared, catalog)
    model = model_source.resolve(
        host.box, deployment, host.facts, catalog, host.revisions.get(deployment.name)
    )
    deployment = quantizer.with_method(deployment, model.architecture)
    image = catalog.images.identify(deployment.image)
    seen = next((one for one in host.facts.images if one.reference == deployment.image), None)
    cuda = _cuda(image, seen)
    engine = engines.of(deployment.engine)
    table = catalog.options[engine.dialect.engine]
    cards = host_cards.of_deployment(deployment, indices, host.cards)
    chosen = settings.resolve(
        deployment,
        model.architecture,
        cards,
        image,
        table,
        _kv_scheme(host, model),
        model.quantization.block,
        model.serves,
    )
    if deployment.gpus is None:
        ranks = chosen.tensor_parallel * chosen.pipeline_parallel
        indices, cards = indices[:ranks], cards[:ranks]
    draft_model = drafters.resolve(
        host.box, deployment, host.facts, catalog, host.drafter_revisions.get(deployment.name)
    )
    drafter = drafters.drafter(deployment, draft_model, catalog)
    pool, unknown = None, None
    ledgers: tuple[Ledger, ...] = ()
    steady = None
    if model.architecture and not engine.exact_pool:
        unknown = f"how {engine.title} divides its memory"
        ledgers = _ledgers(deployment, model, chosen, None, cards, drafter)
    elif chosen.encoder:
        ledgers = _ledgers(deployment, model, chosen, None, cards, drafter)
    elif model.architecture:
        attention = drafter.attention if drafter else None
        pool, unknown = memory.pool_layout(model.architecture, chosen, attention, cards, cuda)
        settled = deployment.max_batched_tokens is not None
        widened = chosen if settled else memory.enough_for_blocks(chosen, pool)
        if widened != chosen:
            chosen = widened
            pool, unknown = memory.pool_layout(model.architecture, chosen, attention, cards, cuda)
        ledgers = _ledgers(deployment, model, chosen, pool, cards, drafter)
        steady = memory.limiting(_ledgers(deployment, model, chosen, pool, _by_catalog(cards), drafter))
    context = _context(chosen, model.architecture, pool, steady, engine)
    command = engine.command(
        Request(
            *(deployment, chosen, model.entry, drafter, table, context, peer_to_peer(cards)),
            settings.drain_seconds(host.box),
        )
    )
    return Case(
        host,
        place,
        declared,
        deployment,
        model,
        image,
        seen,
        cuda,
        indices,
        cards,
        chosen,
        draft_model,
        drafter,
        pool,
        unknown,
        ledgers,
        context,
        command,
    )


def _ledgers(
    deployment: Deployment,
    model: ModelSource,
    chosen: Settings,
    pool: Pool | None,
    cards: tuple[PlannedCard, ...],
    drafter: Drafter | None,
) -> tuple[Ledger, ...]:
    size = served_bytes(deployment, model)
    if model.architecture is None or size is None:
        return ()
    return memory.ledgers(
        model, model.architecture, chosen, pool, cards, size, drafter.bytes if drafter else 0
    )


def _by_catalog(cards: tuple[PlannedCard, ...]) -> tuple[PlannedCard, ...]:
    """The cards with the catalog's memory where it knows them.

    What the command says must be the same before and after the driver is there: a card that reports some MiB
    more than the catalog would otherwise make a new release of the same declaration.
    """
    return tuple(
        replace(card, card=replace(card.card, memory_total_mib=None, memory_reserved_mib=None))
        if card.kind
        else card
        for card in cards
    )


def _context(
    chosen: Settings,
    architecture: Architecture | None,
    pool: Pool | None,
    ledger: Ledger | None,
    engine: Engine,
) -> int | None:
    """The declared context; for `auto` the model's own where it surely fits, else left to the engine.

    An engine that cannot choose by itself gets the most that surely fits, to whole blocks of 1,024. One that
    serves no text is left to it: files that the plan does not read (sentence_bert_config.json) may say less.
    """
    if chosen.context is not None or architecture is None or pool is None or chosen.serves != TEXT:
        return chosen.context
    if ledger is None or ledger.layout is None:
        return None
    sure = ledger.layout.longest(ledger.pool.low, architecture.context)
    if sure >= architecture.context:
        return architecture.context
    if reading.version(chosen.release) >= reading.version(engine.context_since):
        return None
    return max(1024, sure // 1024 * 1024)


def _cuda(image: ImageInfo, seen: Image | None) -> str | None:
    said = seen.env.get("CUDA_VERSION", "") if seen else ""
    version = reading.version(said)
    return ".".join(str(part) for part in version[:2]) if version else image.cuda


def _kv_scheme(host: Host, model: ModelSource) -> bool:
    """Whether the checkpoint says that its cache has 8 bits."""
    for answer in host.facts.models:
        if answer.config and answer.repo == model.repo and answer.revision == model.revision:
            said = answer.config.get("quantization_config")
            return isinstance(said, dict) and bool(
                said.get("kv_cache_scheme") or said.get("kv_cache_quant_algo")
            )
    return False
