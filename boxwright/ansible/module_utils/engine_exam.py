"""What a release must do before it counts, beyond one good answer: stream, call tools, think, draft, hold."""

from __future__ import annotations

import difflib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from ansible.module_utils.engine_probe import DRAFTS, Answer, Endpoint, ProbeError, reasoning_of
from ansible.module_utils.engine_watch import Question, Watch

#: The parts in order, by the names under which they can be left out, and what each one asks for.
PARTS = {
    "stream": "its answer was to come as a stream",
    "tools": "it was to call a tool",
    "reasoning": "it was to think apart from its answer",
    "warm": "it was given long prompts",
    "reference": "it was asked what this checkpoint has answered before",
    "drafts": "its drafts were counted",
    "pool": "its cache was held against the plan",
}
#: Said back by every model that works, in the same words whatever kernels compute it.
REFERENCE_PROMPT = "Write the numbers from 1 to 15 in digits, separated by commas, and nothing else."
REFERENCE_TOKENS = 64
#: How alike two answers of one checkpoint must be, 0 to 1. Kernels differ in the last bits, so the words may
#: part late; one that is garbled shares next to none (1 of 1,176 characters, in a published case). Thoughts
#: wander more than answers.
REFERENCE_FLOOR, THOUGHT_FLOOR = 0.5, 0.2
#: Share of the planned pool that must be there: an engine counts in blocks, and rounds down.
POOL_SHARE = 0.95
#: The least share of drafted tokens that must be accepted. The lowest that anybody has published for a draft
#: head that works is 0.31; one that was lost or garbled has next to none. What ngram drafts is the prompt's.
DRAFT_FLOOR = 0.15
#: Drafted tokens below which nothing is said about their share.
FEWEST_DRAFTS = 48
STREAM_TOKENS, TOOL_TOKENS, WARM_TOKENS = 32, 512, 4
SHORTEST_WARM_PROMPT = 64
MOST_AT_ONCE = 8
TOOL_PROMPT = "What is the weather in Paris? Use the tool get_weather."
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Name of the city."}},
            "required": ["city"],
        },
    },
}
#: How models write calls and thoughts: left in the text of an answer, the parser is another model's.
_RAW_CALL = re.compile(r"<tool_call>|<function=|<\|tool_call|\[TOOL_CALLS\]|<\|python_tag\|>")
_RAW_THOUGHT = re.compile(r"</?think>|<\|channel\|>")
_POOL = re.compile(r"KV cache size: (?P<tokens>[\d,]+) tokens|max_total_num_tokens=(?P<sglang>\d+)")
#: Words that are one token each in every tokenizer that is about.
_WORDS = "the of to and in that it is was for on are with as his they be at one have this from or had by"


class Matter(NamedTuple):
    """What an exam is about. reference: what this checkpoint said in a release that served, if any."""

    plan: Dict[str, Any]
    question: Question
    reference: Optional[str]
    warm_tokens: int
    skipped: Sequence[str] = ()


class Exam:
    """The exam of one engine that has given its first answer.

    parts: what it has, in order (PARTS). guarded: paths that must not answer without the key.
    """

    parts = PARTS
    guarded = ("/metrics", "/version", "/tokenize")

    def __init__(self, watch: Watch, endpoint: Endpoint, matter: Matter, tell: Callable[[str], None]) -> None:
        self._watch, self._endpoint, self._matter, self._tell = watch, endpoint, matter, tell
        self._plan = matter.plan
        self._gate = matter.plan.get("gate") or {}
        self._model = matter.plan["served_name"]
        self._before: Tuple[int, int] = (0, 0)
        #: What was seen, for the record of the run.
        self.found: Dict[str, Any] = {}

    def run(self, answer: Answer) -> Dict[str, Any]:
        """Every part that is not left out; answer: to the gate's question. Raises GateError."""
        signs = set(answer.text.replace(" ", ""))
        if len(answer.text) >= 16 and len(signs) <= 2:
            raise self._watch.failure("garbled", "it answers one sign over and over: %r" % answer.text[:60])
        self._guarded()
        parts = [part for part in self.parts if part not in self._matter.skipped]
        if "drafts" in parts and self._counters():
            self._before = self._watch.drafts(self._counters())
        for part in parts:
            self._tell(part)
            try:
                getattr(self, part)()
            except ProbeError as error:
                self._watch.refuse_if_dying()
                raise self._watch.failure(part, "%s: %s" % (self.parts[part], error)) from error
        return self.found

    def _guarded(self) -> None:
        """No path but its health answers without the key, if a guard was put in front of them."""
        if not self._gate.get("guarded"):
            return
        for path in self.guarded:
            status = self._endpoint.status_without_key(path)
            if status != 401 and path not in (self._plan.get("open_paths") or ()):
                raise self._watch.failure("open", "%s answers without the key: HTTP %d" % (path, status))

    def stream(self) -> None:
        """The answer comes in parts, and ends as a stream does."""
        question = self._matter.question
        text, parts = self._endpoint.stream(
            self._model, question.prompt, min(question.max_tokens, STREAM_TOKENS), question.timeout_s
        )
        if parts < 2 and len(text) > 2 * STREAM_TOKENS:
            raise ProbeError("garbled", "all of it came at once")
        self.found["stream_parts"] = parts

    def tools(self) -> None:
        """A tool is called where a parser for calls is declared."""
        if not self._gate.get("tools"):
            return
        said = ""
        # A model may answer by itself where it can choose; what it must not do is call in a tongue that
        # the parser does not understand.
        for choice in ("auto", "required"):
            message = self._ask(TOOL_PROMPT, TOOL_TOKENS, tools=[TOOL], tool_choice=choice)
            calls = message.get("tool_calls") or []
            if calls:
                self.found["tool_call"] = _arguments(calls[0])
                return
            said = str(message.get("content") or "")[:200]
            if _RAW_CALL.search(said):
                raise ProbeError(
                    "garbled",
                    "the call stayed in the text, so tool-call-parser is another model's: %s" % said,
                )
        raise ProbeError("garbled", "it called none: %s" % said)

    def reasoning(self) -> None:
        """Thoughts come apart from the answer where a parser for them is declared."""
        if not self._gate.get("reasoning"):
            return
        message = self._ask(self._matter.question.prompt, self._matter.question.max_tokens)
        said = str(message.get("content") or "")
        if _RAW_THOUGHT.search(said):
            raise ProbeError(
                "garbled",
                "thoughts stayed in the text, so reasoning-parser is another model's: %s" % said[:200],
            )
        self.found["reasoning_characters"] = len(reasoning_of(message))

    def warm(self) -> None:
        """Prompts as long as real ones have kernels compiled and tuned, before somebody waits for them."""
        longest = self._longest()
        lengths = [part for part in (longest // 8, longest // 2, longest) if part >= SHORTEST_WARM_PROMPT]
        self.found["warmed_tokens"] = [self._warmed(length, number) for number, length in enumerate(lengths)]
        many = min(int(self._plan.get("concurrency") or 1), MOST_AT_ONCE)
        if lengths and many > 1:
            with ThreadPoolExecutor(max_workers=many) as pool:
                list(pool.map(lambda number: self._warmed(lengths[0], number), range(10, 10 + many)))

    def _longest(self) -> int:
        """Words of the longest prompt."""
        context, longest = self._plan.get("context"), self._matter.warm_tokens
        return min(longest, context * 3 // 4) if isinstance(context, int) else longest

    def reference(self) -> None:
        """The same checkpoint says the same, whatever release computes it: else what it says is garbled."""
        message = self._ask(
            REFERENCE_PROMPT, REFERENCE_TOKENS, chat_template_kwargs={"enable_thinking": False}
        )
        said = message.get("content")
        floor = REFERENCE_FLOOR if said else THOUGHT_FLOOR
        text = str(said or reasoning_of(message)).strip()
        known = self._matter.reference
        if known is not None:
            alike = likeness(known, text)
            self.found["likeness"] = round(alike, 2)
            if alike < floor:
                raise ProbeError(
                    "garbled", "it answers %r; the release before it said %r" % (text[:200], known[:200])
                )
        self.found["reference"] = text

    def drafts(self) -> None:
        """Drafts are accepted at or above the floor, counted over everything that was asked here."""
        counters = self._counters()
        if not counters:
            return
        now = self._watch.drafts(counters)
        self.found["drafts"] = {"drafted": now[0], "accepted": now[1]}
        drafted, accepted = now[0] - self._before[0], now[1] - self._before[1]
        floor = 0.0 if self._plan["speculative"].get("method") == "ngram" else DRAFT_FLOOR
        if drafted >= FEWEST_DRAFTS and accepted < floor * drafted:
            raise ProbeError(
                "garbled",
                "%d of %d drafted tokens were accepted, less than %d %%: the draft head does not fit"
                % (accepted, drafted, 100 * floor),
            )

    def pool(self) -> None:
        """The cache holds what the plan promised; one that started beside a full card holds less."""
        promised = (self._plan.get("memory") or {}).get("kv_tokens")
        if isinstance(promised, dict):
            promised = promised.get("low")
        self._watch.read_log()
        found = pool_tokens(self._watch.log)
        if found is None:
            return
        self.found["kv_tokens"] = found
        if promised and found < promised * POOL_SHARE:
            raise ProbeError(
                "small",
                "it holds %d tokens, and the plan promised %d: something else takes memory of its cards"
                % (found, promised),
            )

    def _counters(self) -> Sequence[str]:
        if not self._plan.get("speculative"):
            return ()
        return (self._plan.get("runtime") or {}).get("drafts", DRAFTS) or ()

    def _warmed(self, length: int, number: int) -> int:
        timeout = max(self._matter.question.timeout_s, length / 20)
        # Each begins otherwise than the others: a prompt that is in the cache warms nothing.
        return self._read("%d %s" % (number, words(length, number)), timeout)

    def _read(self, text: str, timeout: float) -> int:
        """Have it read a long text: its tokens, as the engine counts them."""
        document, _ = self._endpoint.complete(self._model, text, WARM_TOKENS, timeout)
        usage = document.get("usage")
        return int((usage if isinstance(usage, dict) else {}).get("prompt_tokens") or 0)

    def _ask(self, prompt: str, max_tokens: int, **more: Any) -> Dict[str, Any]:
        timeout = self._matter.question.timeout_s
        _, choice = self._endpoint.complete(self._model, prompt, max_tokens, timeout, **more)
        message: Dict[str, Any] = choice["message"]
        return message


def words(length: int, number: int) -> str:
    """So many words; another number, other words in another order."""
    known = _WORDS.split()
    return " ".join(known[(place * (number + 1)) % len(known)] for place in range(length))


def likeness(one: str, other: str) -> float:
    """How much of two texts is the same words in the same order, 0 to 1."""
    words = [re.findall(r"\w+|[^\w\s]", text) for text in (one, other)]
    return difflib.SequenceMatcher(None, words[0], words[1], autojunk=False).ratio()


def pool_tokens(log: Sequence[str]) -> Optional[int]:
    """Tokens that the engine's cache holds, as its own log says last; None where it does not say."""
    for line in reversed(log):
        found = _POOL.search(line)
        if found:
            return int((found.group("tokens") or found.group("sglang")).replace(",", ""))
    return None


def _arguments(call: Any) -> str:
    """The arguments of a tool call, which must be JSON. Raises ProbeError."""
    try:
        text = call["function"]["arguments"]
        parsed = json.loads(text) if isinstance(text, str) else text
        if not isinstance(parsed, dict):
            raise ValueError("no object")
        return json.dumps(parsed)[:200]
    except (KeyError, TypeError, ValueError) as error:
        raise ProbeError("garbled", "its call cannot be read (%s): %s" % (error, str(call)[:200])) from error
