"""Addresses in a text: of networks, cards of networks, and what is no address and looks like one.

Four numbers with dots are an address, or a version of a library (`8.9.7.29`). What stands before them tells;
where nothing does, small ones are a version: a box's own address is known, and a client's has a port with it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection

from boxwright.facts.parsers.masking import BEGIN

#: What an address may look like; whether it is one, the standard library decides.
_V4 = r"(?:(?<![A-Za-z0-9.])|(?<=\\[nrtbf])|(?<=%2[Ff]))(?:\d{1,3}\.){3}\d{1,3}(?![A-Za-z0-9]|\.\d)"
_COLON = r"(?::|%3[Aa])"
_V6 = (
    r"(?:(?<![\w:])|(?<=\\[nrtbf])|(?<=\w:)|(?<=%5[Bb])|(?<=%2[Ff]))"
    # The last two groups may be written as IPv4's four numbers (RFC 4291, 2.2).
    r"(?:[0-9A-Fa-f]{0,4}" + _COLON + r"){2,7}(?:(?:\d{1,3}\.){3}\d{1,3}(?!\.?\d)|[0-9A-Fa-f]{0,4})"
    r"(?:%(?:25)?[\w.-]{1,15})?(?![\w:])"
)
_ADDRESS = re.compile(f"(?P<v6>{_V6})|{_V4}")
_HEX = "[0-9A-Fa-f]"
#: Six pairs (Ethernet), eight (FireWire, InfiniBand's GUID) or twenty (InfiniBand), and Cisco's three fours.
_HARDWARE = re.compile(
    r"(?:(?<![\w:.-])|(?<=\\[nrtbf])|(?<=_)|(?<=\benx)|(?<=\w:))(?:"
    rf"{_HEX}{{2}}(?P<sign>[:-]){_HEX}{{2}}(?:(?P=sign){_HEX}{{2}}){{4}}"
    rf"(?:(?:(?P=sign){_HEX}{{2}}){{14}}|(?:(?P=sign){_HEX}{{2}}){{2}})?"
    rf"|(?=[0-9.]{{0,13}}[A-Fa-f]){_HEX}{{4}}\.{_HEX}{{4}}\.{_HEX}{{4}}"
    # As udev names a card of a network.
    rf"|(?<=\benx){_HEX}{{12}})(?![\w:]|[.-]\w)"
)
#: Names that an address makes: of cloud machines (ip-10-0-0-5), and backwards.
_NAME_OF_ADDRESS = re.compile(
    BEGIN + r"(?:ip(?:-\d{1,3}){4}(?![\w-])|(?:\d{1,3}\.){4}in-addr\.arpa|(?:[0-9a-f]\.){32}ip6\.arpa)"
)
#: What a version stands behind: a word for it, a comparison, or the name of something that has versions.
_VERSION_BEFORE = re.compile(
    r"(?i)(?:(?:\b|_)(?:version|ver|release|build|revision|branch|driver|kernel|firmware|vbios|bios"
    r"|tag)s?\W{0,4}"
    r"|(?<![A-Za-z])v|[=<>~!]=\s?|[<>]\s?"
    r"|(?:\b|_|lib)(?:cudnn|cublas(?:lt)?|cufft|curand|cusolver(?:mp)?|cusparse(?:lt)?|cuda\w{0,16}|nccl"
    r"|nvcc|nvrtc"
    r"|nvjitlink|nvtx|cupti|cufile|nvshmem|cutlass|tensorrt|trt|torch\w{0,12}|triton|vllm|sglang"
    r"|flashinfer|xformers"
    r"|nvidia(?:[-_ ](?:smi|driver|toolkit))?|toolkit|runtime|docker|containerd|linux|python|openssl"
    r"|glibc|gcc)"
    r"\d{0,2}(?:[-_]\w{1,12}){0,3}[\s:=(\[\"',/_-]{0,4})$"
)
#: How what stands behind goes on with a version: a revision of Debian's, a local part, a wheel.
_VERSION_AFTER = re.compile(
    r"[-+~](?:\d|cu|rc|dfsg|deb|ubuntu|py|cp|post|git)|\.(?:so|whl|tar|deb|run|dev|post)"
)
#: What an address stands behind, and what goes on with one.
_ADDRESS_BEFORE = re.compile(
    r"(?i)(?://|@|\b(?:at|from|to|via|host|hosts|hostname|peer|client|server|addr|address(?:es)?|ip|ipv4|inet"
    r"|src|dst|source|destination|gateway|dns|nameserver|route|listen(?:ing)?|bind|bound|connect(?:ed"
    r"|ing)?|proxy|endpoint"
    r"|remote|local|ping|ssh|reach|broadcast)s?[\s:=(\[\"'<]{1,4})$"
)
_ADDRESS_AFTER = re.compile(r":\d{1,5}(?![\d:.])|/\d{1,2}(?![\d.])| port \d| - -? ?[\[\"]|\]:\d|:/")
#: Numbers of a version: an address of these is somebody's, and none that a box stands in the log by itself.
_LARGEST_FIRST, _LARGEST = 15, 99


def known(text: str) -> str | None:
    """The one spelling of an address; None for what is none."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def replaced(
    text: str, word: Callable[[str], str], host: Callable[[str], str], own: Collection[str], before: str = ""
) -> str:
    """The text with words for its addresses.

    word: of an address in its one spelling; host: of a name that an address makes. own: addresses that are
    known to be some. before: what stands before the text where it was taken from, as the name of a field.
    """

    def v4(found: re.Match[str]) -> str:
        address = known(found.group(0))
        if address is None or _everybodys(address) or _is_version(found, own, before):
            return found.group(0)
        return word(address)

    def v6(found: re.Match[str]) -> str:
        spelt = re.sub("%3[Aa]", ":", found.group(0))
        address = known(spelt.partition("%")[0])
        if address is None:
            return found.group(0)
        within = ipaddress.IPv6Address(address).ipv4_mapped
        if _everybodys(str(within or address)):
            return found.group(0)
        # An address of IPv4 is the same machine's however it is spelt.
        return f"::ffff:{word(str(within))}" if within else word(address)

    text = _HARDWARE.sub(lambda found: word(re.sub("[:.-]", "", found.group(0)).lower()), text)
    text = _NAME_OF_ADDRESS.sub(lambda found: host(found.group(0).lower()), text)
    return _ADDRESS.sub(lambda found: v6(found) if found["v6"] else v4(found), text)


def _everybodys(address: str) -> bool:
    it = ipaddress.ip_address(address)
    return it.is_loopback or it.is_unspecified or address.startswith("255.")


def _is_version(found: re.Match[str], own: Collection[str], before: str) -> bool:
    """Whether four numbers are the version of something."""
    text, numbers = found.string, [int(one) for one in found.group(0).split(".")]
    if found.group(0) in own:
        return False
    front = (before + text[max(0, found.start() - 60) : found.start()]).rpartition("\n")[2]
    rest = text[found.end() : found.end() + 12]
    if _VERSION_BEFORE.search(front) or _VERSION_AFTER.match(rest):
        return True
    if _ADDRESS_BEFORE.search(front) or _ADDRESS_AFTER.match(rest):
        return False
    return numbers[0] <= _LARGEST_FIRST and numbers[0] != 10 and max(numbers) <= _LARGEST
