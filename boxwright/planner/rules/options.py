"""Rules about options and variables that a deployment names itself: each kind of problem is a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from boxwright.planner.case import Case
from boxwright.planner.rules.registry import GATE, Note, add_rule, advice, gate, note

#: Each release's own parser, read.
MANIFEST = "boxwright/catalog/data/vllm.json"

#: Kind of problem -> its story. The problems are found when the command is written.
STORIES = {
    "option-in-no-release": (
        MANIFEST,
        "No release of the engine has such an option.\n\n"
        "The field reports name several: --enable-mtp, --speculative-model mtp, "
        '--decode-kernel flash2. The engine ends with "unrecognized arguments".',
    ),
    "option-removed": (
        MANIFEST,
        "Options leave the engine as it grows; a start line that worked fails after an "
        "upgrade.\n\nThe release's own table is asked before anything is stopped.",
    ),
    "option-not-yet": (MANIFEST, "An option of a later release is not known to the one in the image."),
    "option-is-declared": (
        "boxwright/catalog/data/vllm_notes.yml",
        "What the plan counts with is declared by keys of "
        "the deployment, not by options: two truths would disagree.",
    ),
    "option-value": (
        MANIFEST,
        "An option's value has a type, and often a list of choices that differs between "
        "releases.\n\nValues go to the engine as arguments of their own; one that looks like an option "
        "would become one.",
    ),
    "variable-removed": (
        "https://github.com/vllm-project/vllm/issues/50292",
        "The engine ignores variables that it does not read any more without a word: the setting is lost.",
    ),
    "variable-not-yet": (MANIFEST, "The engine ignores variables of later releases without a word."),
    "variable-unknown": (
        MANIFEST,
        "A variable that begins with VLLM_ and is read by no release is ignored: the setting is lost.",
    ),
    "variable-is-declared": (
        "boxwright/catalog/data/vllm_notes.yml",
        "Cards, port and hub are decided by the plan, which counts with them; a variable would decide "
        "otherwise behind its back.",
    ),
    "variable-name": (
        "https://pubs.opengroup.org/onlinepubs/9799919799/basedefs/V1_chap08.html",
        "Names of variables have letters, digits and underscores; values one line.",
    ),
    "secret-in-environment": (
        "https://docs.docker.com/reference/cli/docker/inspect/",
        "A container's environment is shown by `docker inspect` and kept in the unit: secrets go into files."
        "\n\nNames that say so are refused, and values in the form of a token under any name.",
    ),
    "secret-in-options": (
        "https://man7.org/linux/man-pages/man1/ps.1.html",
        "A program's arguments are shown by `ps` to everybody on the host, and kept in the unit.",
    ),
}


def _finder(rule: str) -> Callable[[Case], Iterator[Note]]:
    def find(case: Case) -> Iterator[Note]:
        for problem in case.command.problems:
            if problem.rule == rule:
                yield note(problem.message, *problem.fix, at=problem.path, soft=not problem.sure)

    return find


for _rule, (_source, _story) in STORIES.items():
    add_rule(_rule, GATE, _source, _story, _finder(_rule))


@advice(
    "code-from-checkpoint",
    source="https://github.com/vllm-project/recipes/blob/main/models/Qwen/Qwen3.8-27B.yaml",
)
def code_from_checkpoint(case: Case) -> Note | None:
    """trust-remote-code runs Python that came with the weights; the models of the catalog bring none."""
    named = any(
        str(name).lstrip("-").replace("_", "-") == "trust-remote-code" and value
        for name, value in case.deployment.extra_args.items()
    )
    if not named or case.model.entry is None:
        return None
    return note(
        f"trust-remote-code is not needed for {case.model.name}, and lets code from the hub run",
        "leave it out",
        at="extra_args.trust-remote-code",
    )


@gate(
    "tool-choice-without-parser",
    source="https://github.com/vllm-project/vllm/blob/v0.29.0/vllm/entrypoints/openai/cli_args.py",
    engine="vllm",
)
def tool_choice_without_parser(case: Case) -> Note | None:
    """Automatic tool choice needs the parser of the model's calls: "--enable-auto-tool-choice requires
    --tool-call-parser".
    """
    argv = case.command.argv
    if "--enable-auto-tool-choice" not in argv or "--tool-call-parser" in argv:
        return None
    return note(
        f"enable-auto-tool-choice is on, and no tool-call-parser is known for {case.model.name}",
        "extra_args: {tool-call-parser: …} as the model's card says",
        "leave enable-auto-tool-choice out",
        at="extra_args.enable-auto-tool-choice",
    )
