"""The files of a gateway: HAProxy's configuration and its maps, from what is declared. Pure.

A request's way: `clients` (TLS, key, limit, path, model) -> the model's backend (which box, health, retries)
-> the box's own section, reached by a socket that only HAProxy opens, where the engine's key is put in
place of the client's. HAProxy changes headers before it chooses a server, and every box has a key of its own:
hence the second step.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ansible.module_utils.gateway_words import (
    ADMIN,
    CUT_OFF,
    NO_BOX,
    NO_KEY,
    NO_MODEL,
    NO_PATH,
    TOO_MANY,
    TOO_SLOW,
    ident,
    literal,
    quote,
    socket_of,
)

#: Stand in the texts for the directory that holds them and for its name; nothing declared can contain them.
HERE, NAME = "\x00directory\x00", "\x00name\x00"
CONFIG, CLIENTS, LIMITS, MODELS, CERTIFICATE = (
    "haproxy.cfg",
    "clients.map",
    "limits.map",
    "models.json",
    "server.pem",
)
#: Connections of clients at once.
MOST_CONNECTIONS = 2000
#: Length of the window in which a client's requests are counted, in seconds.
WINDOW_S = 60
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_HASH = re.compile(r"[0-9a-f]{64}")
_PATH = re.compile(r"/[A-Za-z0-9_./-]{1,200}")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_SOURCE = re.compile(r"[0-9A-Fa-f:.]+(?:/[0-9]{1,3})?")


def files(settings: Mapping[str, Any], keys: Mapping[str, str], certificate: str) -> Dict[str, str]:
    """Name -> text of the gateway's files; HERE in them is the directory that they will lie in.

    settings: bind, port, paths, affinity, body_bytes, timeout_s, allow_from, models ([{name, servers: [{box,
    address, port}]}]), clients ([{name, sha256, requests_per_minute}]). keys: `model/box` -> the engine's
    key; a server without one is left out. certificate: chain and key as PEM. Raises ValueError for what no
    configuration can hold.
    """
    clients = [_client(one) for one in settings["clients"]]
    models = [
        (one["name"], [server for server in one["servers"] if key_name(one["name"], server["box"]) in keys])
        for one in settings["models"]
    ]
    sections = [
        _global(settings),
        _defaults(settings),
        _entrance(settings, [name for name, _ in models]),
        "\n".join(
            [
                "backend limits",
                "    stick-table type string len 64 size 10k expire 5m store gpc0_rate(%ds)" % WINDOW_S,
            ]
        ),
    ]
    for name, servers in models:
        sections.append(_model(name, servers, settings))
        sections += [_box(name, server, keys[key_name(name, server["box"])]) for server in servers]
    return {
        CONFIG: "# Kept by Boxwright; edits are overwritten.\n" + "\n\n".join(sections) + "\n",
        CLIENTS: "".join("%s %s\n" % (digest, name) for name, digest, _ in clients),
        LIMITS: "".join("%s %d\n" % (name, limit) for name, _, limit in clients),
        MODELS: json.dumps(_listing([name for name, _ in models])) + "\n",
        CERTIFICATE: certificate,
    }


def key_name(model: str, box: str) -> str:
    """Under which name `files` looks for an engine's key."""
    return "%s/%s" % (model, box)


def placed(texts: Mapping[str, str], directory: str) -> Tuple[str, Dict[str, str]]:
    """The name of the directory for these files, below `directory`, and their texts when they lie there."""
    digest = hashlib.sha256(json.dumps(dict(texts), sort_keys=True).encode("utf-8")).hexdigest()[:16]
    here = "%s/%s" % (directory, digest)
    made = {name: text.replace(HERE, here).replace(NAME, digest) for name, text in texts.items()}
    return digest, made


def _client(client: Mapping[str, Any]) -> Tuple[str, str, int]:
    name, digest, limit = str(client["name"]), str(client["sha256"]), int(client["requests_per_minute"])
    if not _WORD.fullmatch(name) or not _HASH.fullmatch(digest) or limit < 0:
        raise ValueError(
            "a client has a name that is one word, a SHA-256 of its key and a limit of 0 or more"
        )
    return name, digest, limit


def _listing(models: Sequence[str]) -> Dict[str, Any]:
    entries = [{"id": name, "object": "model", "created": 0, "owned_by": "boxwright"} for name in models]
    return {"object": "list", "data": entries}


def _global(settings: Mapping[str, Any]) -> str:
    lines = [
        "global",
        # What runs is known by it: a reload has come through when HAProxy says this name.
        "    description " + NAME,
        "    log stdout format raw local0",
        "    user haproxy",
        "    group haproxy",
        "    maxconn %d" % MOST_CONNECTIONS,
        # A request's model stands in its body, and a request can be sent again only while all of it is here.
        "    tune.bufsize %d" % int(settings["body_bytes"]),
        "    stats socket %s mode 600 level admin expose-fd listeners" % ADMIN,
        # A reload lets what runs end; it does not wait for ever.
        "    hard-stop-after %ds" % int(settings["timeout_s"]),
        "    ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets",
    ]
    return "\n".join(lines)


def _defaults(settings: Mapping[str, Any]) -> str:
    lines = [
        "defaults",
        "    mode http",
        "    option http-no-delay",
        # A client that went away does not keep a card busy.
        "    option abortonclose",
        "    timeout connect 5s",
        "    timeout http-request 60s",
        "    timeout http-keep-alive 60s",
        "    timeout queue 30s",
        "    timeout check 10s",
        # The first token of a long prompt takes its time, and a stream may pause.
        "    timeout client %ds" % int(settings["timeout_s"]),
        "    timeout server %ds" % int(settings["timeout_s"]),
        # A box that is switched off says nothing more: half a minute of that, and its requests are over.
        "    option srvtcpka",
        "    srvtcpka-idle 15s",
        "    srvtcpka-intvl 5s",
        "    srvtcpka-cnt 3",
        "    http-error status 502 content-type application/json string %s" % quote(CUT_OFF),
        "    http-error status 503 content-type application/json string %s" % quote(NO_BOX),
        "    http-error status 504 content-type application/json string %s" % quote(TOO_SLOW),
    ]
    return "\n".join(lines)


def _answer(status: int, body: str, condition: str, header: str = "") -> str:
    hdr = " hdr %s" % header if header else ""
    return "    http-request return status %d content-type application/json%s string %s %s" % (
        status,
        hdr,
        quote(body),
        condition,
    )


def _entrance(settings: Mapping[str, Any], models: Sequence[str]) -> str:
    address = str(settings["bind"])
    if not _HOST.fullmatch(address):
        raise ValueError("the gateway's address is none")
    shown = "[%s]" % address if ":" in address else address
    lines = [
        "frontend clients",
        "    bind %s:%d ssl crt %s/%s alpn h2,http/1.1" % (shown, int(settings["port"]), HERE, CERTIFICATE),
    ]
    sources = [str(one) for one in settings["allow_from"]]
    if any(not _SOURCE.fullmatch(one) for one in sources):
        raise ValueError("allow_from has what is no network")
    if sources:
        lines.append(
            "    tcp-request connection reject unless { src 127.0.0.0/8 ::1 %s }" % " ".join(sources)
        )
    lines += [
        "    log global",
        # Neither headers nor bodies: keys and prompts are nobody's to read here.
        '    log-format "%ci %[var(txn.client)] %HM %HPO %ST %B bytes %Ta ms %b/%s %ts retries %rc"',
        "    monitor-uri /health",
        "    monitor fail if %s"
        % (" ".join("{ nbsrv(%s) eq 0 }" % ident("model", one) for one in models) or "TRUE"),
        "    http-request set-var(txn.client) req.fhdr(Authorization),word(2,' '),sha2(256),hex,lower,"
        'map_str(%s/%s) if { req.fhdr(Authorization) -m beg -i "bearer " }' % (HERE, CLIENTS),
        _answer(401, NO_KEY, "unless { var(txn.client) -m found }", "WWW-Authenticate Bearer"),
        "    http-request track-sc0 var(txn.client) table limits",
        "    http-request set-var(txn.limit) var(txn.client),map_str_int(%s/%s,0)" % (HERE, LIMITS),
        _answer(
            429,
            TOO_MANY,
            "if { var(txn.limit) -m int gt 0 } { sc0_gpc0_rate,sub(txn.limit) -m int ge 0 }",
            "Retry-After 5",
        ),
        "    http-request sc-inc-gpc0(0)",
        *_paths([str(one) for one in settings["paths"]]),
        "    http-request return status 200 content-type application/json file %s/%s"
        " if { path /v1/models } METH_GET" % (HERE, MODELS),
        "    http-request wait-for-body time 60s if METH_POST",
        # (single quotes: the dollar is JSONPath's, not a variable of the environment)
        "    http-request set-var(txn.model) req.body,json_query('$.model') if METH_POST",
    ]
    if settings["affinity"] == "session":
        lines += [
            "    http-request set-var(txn.session) rand(4294967295)",
            "    http-request set-var(txn.session) req.body,json_query('$.prompt_cache_key')"
            " if { req.body,json_query('$.prompt_cache_key') -m found }",
            "    http-request set-var(txn.session) req.hdr(X-Session-Id)"
            " if { req.hdr(X-Session-Id) -m found }",
        ]
    if models:
        lines.append("    acl known var(txn.model) -m str -- %s" % " ".join(map(quote, models)))
    # With one model alone, a body that says none (an upload's) means that one.
    strange = "if !known" + (" { var(txn.model) -m found }" if len(models) == 1 else "") if models else ""
    lines.append(_answer(404, NO_MODEL, strange).rstrip())
    for place, one in enumerate(models):
        # Not between braces: HAProxy takes a name that is a brace for the end of them, quoted or not.
        lines.append("    acl model-%d var(txn.model) -m str -- %s" % (place, quote(one)))
        lines.append("    use_backend %s if model-%d" % (ident("model", one), place))
    if len(models) == 1:
        lines.append("    default_backend %s" % ident("model", models[0]))
    return "\n".join(lines)


def _paths(more: Sequence[str]) -> List[str]:
    """Only OpenAI's paths pass, and those that are declared; what an engine has beside them stays inside."""
    if any(not _PATH.fullmatch(one) for one in more):
        raise ValueError("a path of the gateway is none")
    lines = [
        "    acl open path_reg ^/v1/[A-Za-z0-9/_.:-]+$",
        # An engine may be told to load any adapter from anywhere by these two.
        "    acl closed path_sub lora_adapter",
        "    acl closed path_sub ..",
    ]
    if more:
        lines.append("    acl open path %s" % " ".join(more))
    return [*lines, _answer(404, NO_PATH, "if closed || !open")]


def _model(name: str, servers: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> str:
    lines = ["backend %s" % ident("model", name)]
    if settings["affinity"] == "session":
        # One session stays with one box, whose cache knows its prompts, unless that has too much to do.
        lines += [
            "    balance hash var(txn.session)",
            "    hash-type consistent",
            "    hash-balance-factor 150",
        ]
    else:
        lines.append("    balance leastconn")
    lines += [
        "    log global",
        "    option httpchk",
        "    http-check send meth GET uri /health",
        "    http-check expect status 200",
        # Nothing of a request's answer has come: another box may answer it. 502: the box went away before it
        # answered; 503: it takes no new requests. Never after the first byte of an answer.
        "    retries 3",
        "    option redispatch 1",
        "    retry-on conn-failure empty-response 502 503",
        "    default-server check inter 2s fastinter 1s downinter 1s fall 2 rise 1",
    ]
    lines += [
        "    server %s unix@%s" % (ident("", one["box"]), socket_of(name, one["box"])) for one in servers
    ]
    return "\n".join(lines)


def _box(model: str, server: Mapping[str, Any], key: str) -> str:
    address = str(server["address"])
    if not _HOST.fullmatch(address):
        raise ValueError("the address of %s is none" % ident("", server["box"]))
    shown = "ipv6@%s" % address if ":" in address else address
    lines = [
        "listen %s" % ident("box", "%s@%s" % (model, server["box"])),
        "    bind unix@%s mode 600 user haproxy" % socket_of(model, server["box"]),
        "    http-request set-header Authorization %s" % literal("Bearer " + key),
        "    retries 0",
        "    server engine %s:%d" % (shown, int(server["port"])),
    ]
    return "\n".join(lines)
