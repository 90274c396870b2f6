"""Rules about what is other with SGLang, or cannot be known of it."""

from __future__ import annotations

from boxwright.planner.case import Case
from boxwright.planner.rules.registry import Note, advice, note

ARGUMENTS = "https://docs.sglang.ai/advanced_features/server_arguments.html"


@advice("sglang-not-gated-for-drafts", source="boxwright/engines/engine.py", engine="sglang")
def not_gated_for_drafts(case: Case) -> Note | None:
    """A release of vLLM goes live only when its drafts are accepted: it counts them.

    SGLang tells no such counters, only averages of its last steps, and its way of drafting could not be tried
    here without a card. A draft layer that was lost in quantizing makes answers slower, and no error.
    """
    if case.settings.draft_method == "none":
        return None
    return note(
        "whether SGLang accepts the drafts is not checked before the release goes live",
        "look at sglang:spec_accept_length on /metrics after some requests: it must be above 1",
        at="speculative",
    )


@advice("sglang-share-is-another", source=ARGUMENTS, engine="sglang")
def share_is_another(case: Case) -> Note | None:
    """vLLM's gpu_memory_utilization is all that it may use; SGLang's share is that of weights and cache.

    Activations and CUDA graphs come on top of it. Left out, SGLang chooses by the card.
    """
    declared = case.deployment.gpu_memory_utilization
    if declared is None:
        return None
    return note(
        f"gpu_memory_utilization {declared:g} becomes mem-fraction-static, which leaves activations and "
        "graphs out of account",
        "leave it out: SGLang chooses by the card",
        at="gpu_memory_utilization",
    )


@advice(
    "sglang-logs-its-key",
    source="https://github.com/sgl-project/sglang/blob/v0.5.23/python/sglang/srt/entrypoints/engine.py",
    engine="sglang",
)
def logs_its_key(case: Case) -> Note | None:
    """SGLang writes its settings to its log when it starts, and the key that clients send is one of them.

    Boxwright hands the key over in a file inside of the container, so neither `ps` nor `docker inspect` shows
    it; the journal of the unit does, to root and the groups adm and systemd-journal.
    """
    return note(
        "SGLang writes its API key to its log at every start",
        "let nobody read the box's journal who may not have the key",
        at="engine",
    )
