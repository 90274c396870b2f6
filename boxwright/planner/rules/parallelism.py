"""Rules about sharing a model between cards."""

from __future__ import annotations

from boxwright.engines.vllm_names import spelling
from boxwright.planner.cards import PlannedCard
from boxwright.planner.case import Case
from boxwright.planner.rules.registry import Note, advice, gate, note
from boxwright.planner.sharing import divides, most_ranks, split_part

#: 10^9 bytes a second and lane, one way, after encoding: PCIe generation -> bandwidth (PCI-SIG).
LANE_GB_S = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
#: Below these a link slows the reading of prompts clearly: eight lanes of generation 3 have 7.9.
ENOUGH_GB_S, ENOUGH_LANES = 7.8, 8
HEADS = "https://github.com/vllm-project/vllm/issues/596"


def _largest(case: Case) -> int:
    """The most ranks that divide the model and that there are cards for."""
    architecture = case.architecture
    cards = max(1, len(case.cards) // case.settings.pipeline_parallel)
    if architecture is None:
        return 1
    return most_ranks(architecture, cards, case.model.quantization.block, case.deployment.extra_args)


def _way(case: Case) -> str:
    largest = _largest(case)
    return f"tensor_parallel: {largest}" + (
        f" (of the {len(case.cards)} cards)" if len(case.cards) > 1 else ""
    )


@gate("ranks-exceed-cards", source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html")
def ranks_exceed_cards(case: Case) -> Note | None:
    """Each rank of tensor and pipeline parallelism is a process with a card of its own."""
    ranks, cards = case.settings.tensor_parallel * case.settings.pipeline_parallel, len(case.cards)
    if ranks <= cards or not case.host.cards:
        return None
    what = f"tensor_parallel {case.settings.tensor_parallel}"
    if case.settings.pipeline_parallel > 1:
        what += f" times pipeline_parallel {case.settings.pipeline_parallel}"
    has = f"{cards} card{'' if cards == 1 else 's'}"
    return note(f"{what} needs {ranks} cards; the deployment has {has}", _way(case), at="tensor_parallel")


@gate("tp-splits-a-head", source=HEADS)
def splits_heads(case: Case) -> Note | None:
    """Tensor parallel ranks hold whole query heads, so their number divides the number of heads."""
    architecture, tp = case.architecture, case.settings.tensor_parallel
    if architecture is None or architecture.attention.heads % tp == 0:
        return None
    return note(
        f"{architecture.attention.heads} attention heads cannot be shared by {tp} cards",
        _way(case),
        at="tensor_parallel",
    )


@gate("tp-splits-a-kv-head", source=HEADS)
def splits_kv_heads(case: Case) -> Note | None:
    """Tensor parallel ranks hold whole KV heads, or whole copies of them.

    Three cards and 24 query heads of Qwen3.8-27B would do, but its 4 KV heads cannot be shared by three.
    """
    architecture, tp = case.architecture, case.settings.tensor_parallel
    if architecture is None:
        return None
    heads = architecture.attention.kv_heads
    if heads % tp == 0 or tp % heads == 0:
        return None
    return note(f"{heads} KV heads cannot be shared by {tp} cards", _way(case), at="tensor_parallel")


@gate("tp-splits-a-linear-head", source="https://github.com/vllm-project/recipes/issues/805")
def splits_linear_heads(case: Case) -> Note | None:
    """Linear attention's key and value heads are shared like those of attention, but never copied."""
    architecture, tp = case.architecture, case.settings.tensor_parallel
    if architecture is None or architecture.linear is None:
        return None
    linear = architecture.linear
    if linear.key_heads % tp == 0 and linear.value_heads % tp == 0:
        return None
    return note(
        f"{linear.key_heads} key and {linear.value_heads} value heads of linear attention cannot be shared "
        f"by {tp} cards",
        _way(case),
        at="tensor_parallel",
    )


@gate("tp-splits-a-weight-block", source="https://github.com/vllm-project/vllm/issues/25292", engine="vllm")
def splits_weight_blocks(case: Case) -> Note | None:
    """Weights of 8 bits with a scale for each block are shared in whole blocks.

    An expert of Qwen3-30B-A3B is 768 wide: four ranks would hold 192 of it, which blocks of 128 do not
    divide. Expert parallelism gives each rank whole experts instead.
    """
    architecture, block = case.architecture, case.model.quantization.block
    tp, options = case.settings.tensor_parallel, case.deployment.extra_args
    wrong = split_part(architecture, tp, block, options) if architecture else None
    if architecture is None or block is None or wrong is None:
        return None
    what, width = wrong
    return note(
        f"{what} is {width:,} wide; {tp} cards cannot share its blocks of {block[0]} x {block[1]} weights",
        f"tensor_parallel: {most_ranks(architecture, tp - 1, block, options)}",
        *(["extra_args: {enable-expert-parallel: true}"] if what == "an expert" else []),
        at="tensor_parallel",
    )


@advice("cards-left-idle", source=HEADS)
def left_idle(case: Case) -> Note | None:
    """Without a declared number the plan uses as many cards as the model's heads can be shared by."""
    host, deployment = case.host, case.deployment
    if deployment.tensor_parallel or deployment.gpus is not None or len(host.box.deployments) != 1:
        return None
    idle = len(host.cards) - len(case.indices)
    if idle <= 0 or case.architecture is None:
        return None
    parts = "blocks of weights" if divides(case.architecture, len(host.cards)) else "heads"
    return note(
        f"{idle} of {len(host.cards)} cards stay{'s' if idle == 1 else ''} idle: the {parts} of "
        f"{case.model.name} cannot be shared by all of them",
        "declare a second deployment for the others",
        "gpus: […] to say which it uses",
        at="tensor_parallel",
    )


@advice("peer-to-peer-off", source="https://github.com/noonghunna/club-3090/issues/873")
def peer_to_peer_off(case: Case) -> Note | None:
    """GeForce cards on PCIe hang at NCCL's start where peer copies seem to work and do not (IOMMU, ACS).

    The plan switches them off for several GeForce cards. With an NVLink bridge they may be switched on.
    """
    linked = any(word.startswith("NV") for card in case.cards for word in card.card.topology)
    if (
        case.settings.tensor_parallel == 1
        or case.peer_to_peer
        or not linked
        or "NCCL_P2P_DISABLE" in case.deployment.env
    ):
        return None
    return note(
        "the cards have an NVLink bridge, and the plan does not use it: peer copies are off on GeForce cards "
        "until they are tested",
        'env: {NCCL_P2P_DISABLE: "0"} once a transfer test passes',
        at="env",
    )


@advice("peer-to-peer-on", source="https://github.com/NVIDIA/nccl/issues/1637")
def peer_to_peer_on(case: Case) -> Note | None:
    """GeForce cards on PCIe copy to each other only with a patched driver; where they seem to and cannot, the
    engine hangs at NCCL's start or answers nonsense. No GeForce after the RTX 3090 has NVLink.
    """
    cards, deployment = case.cards, case.deployment
    linked = any(word.startswith("NV") for card in cards for word in card.card.topology)
    asked = deployment.env.get("NCCL_P2P_DISABLE") == "0" or any(
        spelling(name) == "disable-custom-all-reduce" and value is False
        for name, value in deployment.extra_args.items()
    )
    if case.settings.tensor_parallel == 1 or case.peer_to_peer or linked or not asked:
        return None
    return note(
        f"copies between cards are switched on, and {cards[0].title} cards on PCIe rarely can copy: the "
        f"engine "
        f"may hang "
        "at its start",
        "leave NCCL_P2P_DISABLE out: copies go through main memory",
        "keep it once a transfer test passes",
        at="env" if "NCCL_P2P_DISABLE" in deployment.env else "extra_args",
    )


@advice("narrow-slot", source="https://github.com/noonghunna/club-3090/issues/178")
def narrow_slot(case: Case) -> Note | None:
    """A card in a slot of few lanes decodes nearly as fast, and reads long prompts slowly when cards share a
    model.

    Slots of the chipset have four lanes. `nvidia-smi topo -m` does not show lanes; the link's width does.
    """
    if case.settings.tensor_parallel == 1:
        return None
    narrow = [card for card in case.cards if _is_narrow(card)]
    if not narrow:
        return None
    places = ", ".join(
        f"card {card.index} has x{card.card.link.width}, {_gigabytes(card):.1f} GB/s" for card in narrow
    )
    return note(
        f"{places}: prompts will be read slowly, since every layer's result crosses this link",
        "use a slot that is wired to the processor with 8 lanes or more",
        at="gpus",
    )


def _is_narrow(card: PlannedCard) -> bool:
    width = card.card.link.width or 0
    return width > 0 and (width < ENOUGH_LANES or _gigabytes(card) < ENOUGH_GB_S)


def _gigabytes(card: PlannedCard) -> float:
    """Bandwidth of a card's link, one way: the width as it is, the generation at its best (it falls at "
    "idle)."""
    link = card.card.link
    generation = link.max_generation or (card.kind.pcie_generation if card.kind else None) or 3
    return (link.width or 0) * LANE_GB_S.get(generation, 1.0)


@advice("cards-far-apart", source="https://docs.nvidia.com/deploy/nvidia-smi/index.html")
def far_apart(case: Case) -> Note | None:
    """Cards at two processors reach each other through the link between the processors (SYS in
    `nvidia-smi topo -m`), and every layer's result takes that way.
    """
    if case.settings.tensor_parallel == 1:
        return None
    used = {card.index for card in case.cards}
    for card in case.cards:
        for other, word in enumerate(card.card.topology):
            if word == "SYS" and other in used and other != card.index:
                return note(
                    f"cards {card.index} and {other} are at two processors (SYS in nvidia-smi topo -m)",
                    "gpus: […] of one processor, where the model fits them",
                    "move a card to a slot of the other's processor",
                    at="gpus",
                )
    return None


@advice("mixed-cards", source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html")
def mixed_cards(case: Case) -> Note | None:
    """Ranks wait for each other: the smallest card sets the memory and the slowest the speed."""
    titles = sorted({card.title for card in case.cards})
    if len(titles) < 2:
        return None
    return note(
        f"the deployment is shared by cards of several kinds ({', '.join(titles)}): each is used as far as "
        "the smallest and slowest goes",
        "gpus: […] of one kind",
        at="gpus",
    )
