"""What stands in a log and is no word of the programs': what somebody asked a model, and what it answered.

Whoever asks could write any error into it.
"""

from __future__ import annotations

import re

#: How engines write down requests and answers.
_LOGGED = re.compile(r"^(Received request |Generated response |Receive: obj=|Finish: obj=)")
#: How a person or a client writes down a conversation.
_SPOKEN = re.compile(
    r"^\W{0,4}(?:(?:the )?(?:model|assistant|user|human|bot|ai|prompt|question|answer|completion|chat)"
    r" (?:says?|said|asks?|asked|answers?|answered|replies|replied|writes|wrote|output)"
    r"|assistant|user|human|bot|ai|prompt|question|answer|completion)\W{0,3}[:>] ?",
    re.IGNORECASE,
)
#: Where the text of a message begins in a request or an answer as JSON, or as Python writes such a thing.
_QUOTED = re.compile(
    r"""\\{0,3}["']?\b(?:content|prompt|messages|completion|reasoning_content|generated_text)\\{0,3}["']?\s?[:=]\s?"""
    r"""(?:\[\s?)?(?:\{\s?)?\\{0,3}["']"""
)


def is_talk(text: str, place: int = 0) -> bool:
    """Whether what stands at a place of a line's text is part of what somebody asked, or was answered."""
    return bool(_LOGGED.match(text) or _SPOKEN.match(text) or _QUOTED.search(text, 0, place))
