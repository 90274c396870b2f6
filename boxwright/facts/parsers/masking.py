"""Taking secrets out of texts that are shown, kept or sent on.

A secret is known (an inventory's, a box's key), has a form of its own (a hub's token, a private key), or
stands after a name that says so (`X_PASSWD=…`, a header, an address). What only looks like one stays: kinds
of tokens that a model has, keys of dictionaries, numbers that are counted.
"""

from __future__ import annotations

import json
import re
from typing import Iterable, Set
from urllib.parse import quote

MASK = "***"
#: Shortest secret that is looked for anywhere; a shorter one would blank out half of a log, so it is looked
#: for as a word of its own, down to the second length. Still shorter ones only go after a name.
SHORTEST, SHORTEST_WORD = 6, 3
#: What begins a word that is looked for: no letter or digit before, or the escape of a text within a text.
BEGIN = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2}))"
#: Forms that only secrets have.
_FORMS = re.compile(
    BEGIN
    # Engines call much hf_something.
    + r"(?:hf_(?!(?:over|transf|token|process|quant|generat|model|pretrain|checkpoint|safetensor|pipelin"
    r"|architect|infer|dataset|endpoint|download|accelerat|repositor|registr|function|config|cache|snapshot)[a-z]{0,12}"
    r"(?![A-Za-z0-9]))[A-Za-z0-9]{8,2000}"
    r"|api_org_[A-Za-z0-9]{16,2000}"
    r"|sk-[A-Za-z0-9_-]{8,2000}|gh[pousr]_[A-Za-z0-9]{16,2000}|github_pat_[A-Za-z0-9_]{16,2000}"
    r"|glpat-[A-Za-z0-9_-]{16,2000}|xox[abeprs]-[A-Za-z0-9-]{10,2000}|nvapi-[A-Za-z0-9_-]{16,2000}"
    r"|dckr_pat_[A-Za-z0-9_-]{16,2000}|pypi-[A-Za-z0-9_-]{32,2000}|npm_[A-Za-z0-9]{30,2000}"
    r"|AIza[A-Za-z0-9_-]{30,2000}"
    r"|ya29\.[A-Za-z0-9_-]{16,2000}|hv[sb]\.[A-Za-z0-9_-]{16,2000}|A[KS]IA[A-Z0-9]{12,2000}"
    r"|ms-[0-9a-f]{8}-[0-9a-f-]{20,2000}"
    # A JSON Web Token: two parts or three, the first of which is an object of JSON.
    r"|eyJ[A-Za-z0-9_-]{4,4000}(?:\.[A-Za-z0-9_-]{2,8000}){1,4}\.?)"
)
#: From the first line of a private key to its last, or as far as there is one: half a key is one too.
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S]){0,40000}"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)
#: A line of one that stands by itself: 64 letters of base64, which no hash is and no path.
_OF_KEY = re.compile(
    r"(?:(?<![^\s\"'])|(?<=\\n))(?=[A-Za-z0-9+/]{0,63}[0-9+])(?=[A-Za-z0-9+/]{0,63}[G-Z])(?=[A-Za-z0-9+/]{0,63}[g-z])"
    r"[A-Za-z0-9+/]{64}(?=\s|$|\\n|[\"'])"
)
#: A public key tells whose it is, by itself and by what stands behind it.
_PUBLIC_KEY = re.compile(
    r"((?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-\w{1,20}|sk-(?:ssh|ecdsa)-[\w.@-]{1,60}) )"
    r"AAAA[A-Za-z0-9+/=]{16,4000}"
    r"(?: [^\s\"'\\]{1,200})?"
)
#: A quote, also one of a text within a text, and of bytes.
_QUOTE = r"(?:\\{0,4}[\"'])"
#: Who logs in within an address: a name and a password, in which any sign may stand; a port is none.
_IN_URL = re.compile(
    BEGIN + r"([a-zA-Z][a-zA-Z0-9+.-]{1,20}://)[^\s/@:\"'<>\\]{0,100}:(?!\d{1,5}(?:[/?#\"'\s\\]"
    r"|$))[^\s\"'<>\\]{0,300}@"
)
#: A name alone is a token there; for ssh it is a user, which is somebody else's matter.
_ALONE_IN_URL = re.compile(BEGIN + r"((?:https?|ftp|s3)://)[^\s/@:\"'<>\\?#]{1,300}@")
_SEPARATOR = r"\s{0,3}(?:=>|:=|[:=])\s{0,3}"
#: What a list or bytes begin with.
_LEAD = r"\[?(?:b(?=" + _QUOTE + r"))?"
#: A value: all within its quotes, or a word; a list's first is one too.
_VALUE = (
    _LEAD + r"(?:(?P<quote>" + _QUOTE + r")(?P<quoted>(?:(?!(?P=quote))[^\n]){0,4000})(?P=quote)"
    r"|(?P<plain>(?:[^\s\"',;}\])&<>\\]|\\(?![\\\"'nrt])){1,4000}))"
)
#: Headers that carry secrets, to the end of their line; of Authorization the scheme stays.
_HEADER = re.compile(
    r"(?i)((?:(?:proxy-)?authorization|(?:set-)?cookie2?|x-(?:[a-z0-9]{1,20}-){0,4}(?:key|token|auth|secret)"
    r"|api-key|x-vault-token|x-amz-security-token)"
    r"(?:" + _QUOTE + r"?\s{0,3}[:=]|" + _QUOTE + r"\s{0,3},)\s{0,3}" + _LEAD + r")"
    r"(?:(?P<quote>" + _QUOTE + r")(?P<q_scheme>(?:Bearer|Basic|Digest|Token|Negotiate)\s{1,3})?"
    r"(?P<quoted>(?:(?!(?P=quote))[^\n]){1,8000})(?P=quote)?"
    r"|(?P<scheme>(?:Bearer|Basic|Negotiate|Token)\s{1,3})(?P<word>[^\s\"'\\,;]{1,8000})"
    r"|(?P<line>(?:(?!\\[nr])[^\n\r\"']|(?<==)\"[^\"\n]{0,400}\"){1,8000}))"
)
_BEARER = re.compile(r"(?i)(?<![a-z])(bearer\s{1,3})([A-Za-z0-9._~+/=-]{6,4000})")
#: The end of a name after which a secret stands. What stands before it, _INNOCENT looks at.
_NAME_END = (
    r"(?:passw(?:or)?d|passwd|passphrase|secret|credential|token|[_-]pwd|[_-]pass|[_-]auth|[_-]key|apikey"
    r"|(?-i:(?<=[a-z])(?:Key|Pwd|Pass)))s?(?:[_-](?:id|b64|base64|\d{1,2}))?"
)
_NAMED = re.compile(
    r"(?i)(" + _NAME_END + r")(" + _QUOTE + r"?" + _SEPARATOR + r"|" + _QUOTE + r"\s{0,3},\s{0,3})" + _VALUE
)
#: After an option any word is its value; after a name by itself, one that no person would write.
_OPTION = re.compile(
    r"(?i)(?<![\w-])--[\w-]{0,60}?(" + _NAME_END + r")(" + _QUOTE + r",\s{0,3}|\s{1,3})" + _VALUE
)
_BESIDE = re.compile(
    r"(?i)(?<![A-Za-z])(passw(?:or)?d|passwd|secret|token|[\w-]{0,40}api[-_ ]?key)(\s{1,3}(?:is\s{1,3})?)"
    + _VALUE
)
#: As Kubernetes and Compose write a variable.
_PAIR = re.compile(
    r"(?i)(name" + _QUOTE + r"?\s{0,3}:\s{0,3}" + _QUOTE + r"?[\w.-]{0,80}?" + _NAME_END
    + _QUOTE + r"?,?\s{1,80}" + _QUOTE + r"?value" + _QUOTE + r"?\s{0,3}:\s{0,3})" + _VALUE
)  # fmt: skip
#: A name that says so by itself; what a password is of may stand behind it.
_TELLING = re.compile(
    r"(?i)(?:" + _NAME_END + r"|(?:passw(?:or)?d|passwd|passphrase|secret|credential)s?_"
    r"(?!file|path|name|required|length)\w{1,40})$"
)
#: Names that end like a secret's and are none: a tokenizer's words, keys of tables, and public ones.
_INNOCENT = re.compile(
    r"(?i)(?:(?:^|[^a-z0-9])(?:bos|eos|pad|unk|sep|cls|mask|eot|eom|stop|start|end|begin|think|thinking"
    r"|image|video|audio"
    r"|tool|special|added|extra|draft|first|1st|last|next|prev|per|output|input|prompt|new|each|sampled"
    r"|generated"
    r"|placeholder|reasoning|user|invalid|decode|prefill|bonus|second|of|the|a)[_ -]token(?:_ids?)?"
    r"|(?:cache|sort|dict|primary|foreign|public|state|group|routing|partition|index|weight|param|layer"
    r"|num|head"
    r"|signing|signed|host|repository|archive|missing|unexpected|json|yaml|config|map|lookup|block|hash"
    r"|prefix"
    r"|kv|q|k|v|to|from|by|the|a|of|for|with)[_ -]key(?:s|_id)?|gpg[_-]?key|tokens"
    r"|(?-i:(?<!api)(?<!access)(?<!secret)(?<!private)(?<!signing)[_-]keys)|(?:^|[^a-z])(?:no"
    r"|without)[_-]auth)$"
)
#: Values after a secret's name that are none: words that an error says about it, and counts.
_PLAIN = re.compile(
    r"(?i)^(?:required|invalid|missing|expired|provided|is|was|has|not|none|null|true|false|file|yes|no"
    r"|\*{3}.{0,4}|"
    r"%\w|\$\{?\w{1,60}\}?|\{\w{0,60}\}|[.:;!?]|)$"
)
_COUNTED = re.compile(r"[+-]?\d{1,9}(?:\.\d{1,6})?(?:[a-z]{1,2}|%)?$")
_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z]).{6,}|.{20,}")


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with tokens, keys, passwords and the given secrets replaced by `***`."""
    text = without(text, secrets)
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _PUBLIC_KEY.sub(r"\g<1>" + MASK, text)
    text = _FORMS.sub(MASK, text)
    text = _IN_URL.sub(r"\g<1>" + MASK + "@", text)
    text = _ALONE_IN_URL.sub(r"\g<1>" + MASK + "@", text)
    text = _HEADER.sub(_hide_header, text)
    text = _BEARER.sub(r"\g<1>" + MASK, text)
    text = _PAIR.sub(lambda found: found.group(1) + _masked(found), text)
    text = _OPTION.sub(_hide, text)
    text = _NAMED.sub(_hide, text)
    text = _BESIDE.sub(_hide_random, text)
    return _OF_KEY.sub(MASK, text)


def without(text: str, secrets: Iterable[str]) -> str:
    """The text without what is known to be secret, however it is written."""
    known = {one for secret in secrets if len(secret) >= SHORTEST_WORD for one in _spellings(secret)}
    # The longest first: of one that holds another nothing is to be left.
    for one in sorted(known, key=len, reverse=True):
        if len(one) >= SHORTEST:
            text = text.replace(one, MASK)
        elif one in text:
            # A part of a version, a name or a number is no word of its own.
            before, after = r"(?<![A-Za-z0-9])(?<![A-Za-z0-9][._-])", r"(?![A-Za-z0-9]|[._-][A-Za-z0-9])"
            text = re.sub(r"(?:" + before + r"|(?<=\\[nrtbf]))" + re.escape(one) + after, MASK, text)
    return text


def tells(name: str) -> bool:
    """Whether a name says that its value is a secret: `X_PASSWD`, `apiKey`, `hub token`."""
    return bool(_TELLING.search(name)) and not _INNOCENT.search(name)


def is_plain(value: str) -> bool:
    """Whether a value is a word that stands for none: nothing, `none`, what is masked, a template."""
    return bool(_PLAIN.match(value.strip()))


def _spellings(secret: str) -> Set[str]:
    """A secret as it is, and as it stands within a JSON text, one within another, and an address."""
    inner = json.dumps(secret)[1:-1]
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    address = quote(secret, safe="", errors="replace")
    return {secret, inner, plain, json.dumps(inner)[1:-1], json.dumps(plain)[1:-1], address}


def _masked(found: "re.Match[str]") -> str:
    """What is left of a value: its quotes, where it has any."""
    value = found.group("plain")
    whole = found.group(0)
    begin = found.start("plain") if value is not None else found.start("quote")
    lead = whole[_offset_of_value(found) : begin - found.start()]
    sign = found.group("quote") or ""
    return lead + sign + MASK + sign


def _offset_of_value(found: "re.Match[str]") -> int:
    last = found.re.groupindex["quote"] - 1
    return found.end(last) - found.start()


def _value(found: "re.Match[str]") -> str:
    quoted = found.group("quoted")
    return str(found.group("plain") if quoted is None else quoted)


def _named_innocently(found: "re.Match[str]") -> bool:
    name = found.string[max(0, found.start(1) - 40) : found.end(1)]
    return bool(_INNOCENT.search(name))


def _hide(found: "re.Match[str]") -> str:
    value = _value(found)
    if "," in found.group(2) and found.string[found.end() : found.end() + 4].lstrip().startswith(":"):
        # The value is the next name: `"name": "X_KEY", "value": …` is a pair.
        return found.group(0)
    counted = found.group(1).lower().startswith("token") and _COUNTED.match(value)
    if counted or _PLAIN.match(value) or _named_innocently(found):
        return found.group(0)
    whole = found.group(0)
    return whole[: _offset_of_value(found)] + _masked(found)


def _hide_random(found: "re.Match[str]") -> str:
    value = _value(found)
    random = found.group("plain") is None or _RANDOM.match(value)
    if not random or _PLAIN.match(value) or _named_innocently(found):
        return found.group(0)
    return found.group(0)[: _offset_of_value(found)] + _masked(found)


def _hide_header(found: "re.Match[str]") -> str:
    if found.group("quoted") is not None:
        sign = found.group("quote")
        end = sign if found.group(0).endswith(sign) else ""
        return found.group(1) + sign + (found.group("q_scheme") or "") + MASK + end
    if found.group("word") is not None:
        return found.group(1) + found.group("scheme") + MASK
    return found.group(1) + MASK
