"""A box as declared: its cards, its driver, and what it serves.

The classes are what the rest of Boxwright reads. Their defaults are those of the roles' argument_specs (a
test compares them), so that a box read without a role's defaults means the same as one read with them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from boxwright.spec import networks
from boxwright.spec.decode import INVALID, READ, Decoder, plain
from boxwright.spec.problem import MASK, SpecErrors
from boxwright.spec.tuning import Tuning

#: What `box_proxy` says where the controller is the proxy, and the address on the host that leads there: the
#: same in boxwright/ansible/module_utils/way_out.py.
CONTROLLER, AT_CONTROLLER = "controller", "http://127.0.0.1:3129"
#: More cards than any one host holds; keeps a mistyped number from becoming a long list.
_MOST_CARDS = 64


@dataclass(frozen=True)
class Secret:
    """A value that no message, repr or plan may show."""

    value: str = field(repr=False)

    def __str__(self) -> str:
        return MASK

    def __bool__(self) -> bool:
        return bool(self.value)

    def reveal(self) -> str:
        """The value itself."""
        return self.value


@dataclass(frozen=True)
class Cards:
    """Cards of one kind. model: a name of the catalog (`rtx5090`). count: how many."""

    model: str
    count: int = 1


@dataclass(frozen=True)
class ModelRef:
    """Which model: exactly one of name (of the catalog), repo (of the hub), path (a directory on the host).

    revision: branch, tag or commit of repo; None is what the lock, or else the hub's default branch, says.
    """

    name: str | None = None
    repo: str | None = None
    revision: str | None = None
    path: str | None = None

    def __str__(self) -> str:
        return self.name or self.path or f"{self.repo}" + (f"@{self.revision}" if self.revision else "")


@dataclass(frozen=True)
class Quantize:
    """Make an integer checkpoint on the host. bits: of a weight. group_size: weights that share a scale.

    calibration: path of a text on this machine; None for the box's, or the role's own.
    """

    method: str = "auto"
    bits: int = 4
    group_size: int = 128
    calibration: str | None = None


def _secret(decode: Decoder, value: object, path: str) -> object:
    text = decode.value(str, value, path)
    return text if text is INVALID else Secret(text)


def _model(decode: Decoder, value: object, path: str) -> object:
    """`name` of the catalog, `{repo: …, revision: …}` or `{path: …}`."""
    if isinstance(value, str) and value:
        return ModelRef(name=str(value))
    allowed = "a name of the catalog, {repo: organization/name, revision: …} or {path: /directory}"
    if not isinstance(value, Mapping):
        return decode.fail(path, value, "must name a model", allowed)
    model = decode.structure(ModelRef, value, path)
    if model is not INVALID and (model.name or bool(model.repo) is bool(model.path)):
        return decode.fail(path, value, "must say exactly one of repo and path", allowed)
    return model


@dataclass(frozen=True)
class Speculative:
    """Drafting. method: mtp, dflash2, ngram or none. tokens: drafted tokens a step, None where left out.

    model: the draft model where the method has one: a drafter of the catalog, a repository or a directory;
    None is the one that the catalog has for the deployment's model.
    """

    method: str = "none"
    tokens: int | None = None
    model: ModelRef | None = field(default=None, metadata={READ: _model})


def _indices(decode: Decoder, value: object, path: str) -> object:
    """A list of card indices; a number N means the first N cards."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (
            tuple(range(value))
            if 0 < value <= _MOST_CARDS
            else decode.fail(
                path, value, "must be at least one card", f"1 to {_MOST_CARDS}, or a list of indices"
            )
        )
    return decode.value(tuple[int, ...], value, path)


def _environment(decode: Decoder, value: object, path: str) -> object:
    """Names to strings; a whole number is taken as its digits (`NCCL_P2P_DISABLE: 1`), a boolean is not."""
    if not isinstance(value, Mapping):
        return decode.fail(path, value, "must be a mapping of names to strings")
    texts = {
        key: str(item) if isinstance(item, int) and not isinstance(item, bool) else item
        for key, item in value.items()
    }
    return decode.value(Mapping[str, str], texts, path)


def _cards(decode: Decoder, value: object, path: str) -> object:
    """One `{model, count}` or a list of such."""
    if isinstance(value, Mapping):
        cards = decode.structure(Cards, value, path)
        return cards if cards is INVALID else (cards,)
    return decode.value(tuple[Cards, ...], value, path)


@dataclass(frozen=True)
class Deployment:
    """One served model.

    serves: text, embeddings or reranking, None for what the model is made for. gpus: indices of its cards,
    None for all. context: tokens of prompt and answer together, "auto" for the largest that fits.
    concurrency: sequences at once. tensor_parallel: None for all of its cards (divided by
    pipeline_parallel). gpu_memory_utilization: share of a card, 0 to 1; kv_cache_memory_bytes: bytes of KV
    pool a card; at most one of the two. max_batched_tokens: tokens of one step. prefix_caching: None for the
    engine's own default. open_paths: answered without the key. outgoing: it may
    call out. api_key: None for one generated on the host.
    extra_args: option names without dashes. env: of the engine's process. gate_expect: regular expression
    that the answer to gate_prompt must match.
    """

    name: str
    model: ModelRef = field(metadata={READ: _model})
    image: str
    serves: str | None = None
    engine: str = "vllm"
    gpus: tuple[int, ...] | None = field(default=None, metadata={READ: _indices})
    context: int | str = "auto"
    concurrency: int = 8
    kv_cache: str = "auto"
    speculative: Speculative = Speculative()
    prefix_caching: bool | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int = 1
    gpu_memory_utilization: float | None = None
    kv_cache_memory_bytes: int | None = None
    max_batched_tokens: int | None = None
    port: int = 8000
    bind: str = "127.0.0.1"
    open_paths: tuple[str, ...] = ()
    outgoing: bool = False
    api_key: Secret | None = field(default=None, metadata={READ: _secret})
    quantize: Quantize | None = None
    extra_args: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, metadata={READ: _environment})
    gate_prompt: str | None = None
    gate_expect: str | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only the box itself reaches it."""
        try:
            return ipaddress.ip_address(self.bind.strip("[]")).is_loopback
        except ValueError:
            return self.bind == "localhost"


def _proxy(decode: Decoder, value: object, path: str) -> object:
    """The proxy's address as the host sees it."""
    text = decode.value(str, value, path)
    return AT_CONTROLLER if text == CONTROLLER else text


HUGGING_FACE, MODELSCOPE = "https://huggingface.co", "https://modelscope.cn"


@dataclass(frozen=True)
class Hub:
    """Where weights come from. kind: the protocol. endpoint: URL without a final slash."""

    kind: str = "huggingface"
    endpoint: str = HUGGING_FACE
    token: Secret | None = field(default=None, metadata={READ: _secret})

    @property
    def address(self) -> str:
        """The endpoint, or that of the hub whose protocol is declared where none is."""
        return MODELSCOPE if (self.kind, self.endpoint) == ("modelscope", HUGGING_FACE) else self.endpoint


@dataclass(frozen=True)
class Driver:
    """The declared driver: variables nvidia_driver_*. version: of its packages, None for any.

    source: whose packages, `vendor` or `distribution`.
    """

    branch: str = "580"
    version: str | None = None
    flavor: str = "open"
    manage: bool = True
    source: str = "vendor"
    reboot: bool = False
    cuda_toolkit: str | None = None

    @property
    def upstream(self) -> str | None:
        """The version as NVIDIA has it, without what packagers add: `580.105.08` of `3:580.105.08-1.el9`."""
        return re.sub("^[0-9]+:|-.*$", "", self.version) if self.version else None


@dataclass(frozen=True)
class Box:
    """All that is declared of one host.

    proxy: its address on the host, also where the controller is it. no_proxy: what is reached without it.
    ca: certificates of authorities, as PEM text.
    gpus: the declared cards, empty when they are left to what the host has. allow_from: networks that reach
    the published ports, empty for all. settings: every variable of a role (`<role>_…`) as declared, for what
    has no attribute here.
    """

    host: str
    gpus: tuple[Cards, ...] = field(default=(), metadata={READ: _cards})
    deployments: tuple[Deployment, ...] = ()
    hub: Hub = Hub()
    pip_index_url: str | None = None
    proxy: str | None = field(default=None, metadata={READ: _proxy})
    no_proxy: tuple[str, ...] = ()
    ca: str | None = None
    allow_from: tuple[str, ...] = field(default=(), metadata={READ: networks.read})
    root_dir: str = "/var/lib/boxwright"
    config_dir: str = "/etc/boxwright"
    driver: Driver = Driver()
    tuning: Tuning = field(default_factory=Tuning)
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def gpu_count(self) -> int:
        """Number of declared cards, 0 when none are declared."""
        return sum(cards.count for cards in self.gpus)


#: Roles whose variables a box keeps in `settings`.
ROLES = (
    "preflight",
    "nvidia_driver",
    "container_runtime",
    "gpu_tuning",
    "model_weights",
    "model_quantize",
    "engine",
    "monitoring",
    "gateway",
)
ROLE_PREFIXES = tuple(f"{role}_" for role in ROLES)


def box_from_variables(host: str, variables: Mapping[str, object]) -> Box:
    """The box that a host's merged variables declare.

    The variables are taken as they are: no string becomes a number. Other names than `box_…` and the roles'
    own are left alone. Raises SpecErrors with every mistake found; `boxwright.spec.validate` finds more
    (ranges, choices, misspelt variables of roles) and says where they stand.
    """
    decode = Decoder(host, root_prefix="box_")
    shared = {
        name.removeprefix("box_"): value for name, value in variables.items() if name.startswith("box_")
    }
    box: Box = decode.structure(
        Box,
        shared,
        "",
        host=str(host),
        driver=_part(decode, Driver, "nvidia_driver_", variables),
        tuning=_part(decode, Tuning, "gpu_tuning_", variables),
        settings={name: plain(value) for name, value in variables.items() if name.startswith(ROLE_PREFIXES)},
    )
    if decode.problems:
        raise SpecErrors(decode.problems)
    return box


def _part(decode: Decoder, kind: type, prefix: str, variables: Mapping[str, object]) -> Any:
    """The dataclass whose fields are the variables `<prefix><field>`."""
    own = {f.name: variables[prefix + f.name] for f in fields(kind) if prefix + f.name in variables}
    return decode.under(prefix).structure(kind, own, "")
