"""The verbs: `invoke --list` names them, `invoke --help VERB` explains one. Parse, call, show.

Each verb imports what it calls: a plan shall not wait for what only the lab needs.
"""

from __future__ import annotations

from typing import Any

from invoke import Collection, task

from boxwright.cli import program
from boxwright.cli.verb import told
from boxwright.cli.words import WordOrNone

program.adopt()

HOST = "a name of the inventory (repeatable)"
INVENTORY = "an inventory directory or file instead of the lab's and inventory/local (repeatable)"
ALL = "every host of the inventory"
JSON = "print JSON for programs"
#: `told` sees to it: no verb does anything about it.
VERBOSE = "show every task and what it returned; beside --json, on standard error"
BECOME = "ask for the password that sudo wants on the box"


@task(
    help={
        "host": "how ssh reaches the box: you@address, you@address:port, or a Host of ~/.ssh/config",
        "name": "what to call it (default: its host name, or box1, box2, …)",
        "inventory": "an inventory directory of your own instead of inventory/local",
        "model": "only models whose name begins so (qwen3.8)",
        "context": "tokens that one sequence must be able to have",
        "concurrency": "sequences that must stay in the cache at once",
        "image": "an engine image instead of the catalog's",
        "facts": "facts recorded there with `invoke facts --json`, instead of asking the box",
        "ssh_config": "a file instead of ~/.ssh/config, for this and every later visit",
        "print": "only show what would be written",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    }
)
@told
def init(
    c: Any,
    host: str,
    name: str = "",
    inventory: str = "",
    model: str = "",
    context: str = "",
    concurrency: str = "",
    image: str = "",
    facts: str | None = None,
    ssh_config: str = "",
    print: bool = False,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Look at a box over SSH and write its host file, with what the plan finds best for its cards."""
    from boxwright.cli import become, new_box, recommending

    become.ask(ask_become_pass)
    new_box.init(
        host,
        name=name,
        inventory=inventory,
        model=model,
        wanted=recommending.wish(context, concurrency, image),
        facts_file=facts,
        ssh_config=ssh_config,
        only_show=print,
        as_json=json,
    )


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "check": "say what would change, change nothing",
        "full": "visit every role, also those that the plan sees to be as declared",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def provision(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    check: bool = False,
    full: bool = False,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Bring a box to what the inventory declares, and see that its model answers. Rerun it to upgrade."""
    from boxwright.cli import become, provisioning

    become.ask(ask_become_pass)
    provisioning.provision(host, inventory, every=all, check=check, full=full, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "offline": "plan from the declared cards, without a connection",
        "facts": "plan against facts recorded with `invoke facts --json`",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def plan(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    offline: bool = False,
    facts: str | None = None,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Say whether it fits, what would change and which command the engine gets; touch nothing."""
    from boxwright.cli import become, planning

    become.ask(ask_become_pass)
    planning.plan(host, inventory, every=all, offline=offline, facts_file=facts, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def facts(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Read what a box is: cards, driver, container runtime, room, models."""
    from boxwright.cli import become, planning

    become.ask(ask_become_pass)
    planning.facts(host, inventory, every=all, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "offline": "compare on the declared cards, without a connection",
        "facts": "compare on facts recorded with `invoke facts --json`",
        "model": "only models whose name begins so (qwen3.8)",
        "context": "tokens that one sequence must be able to have",
        "concurrency": "sequences that must stay in the cache at once",
        "image": "an engine image instead of the catalog's",
        "all_choices": "every choice that works, not only the best",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def recommend(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    offline: bool = False,
    facts: str | None = None,
    model: str = "",
    context: str = "",
    concurrency: str = "",
    image: str = "",
    all_choices: bool = False,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Compare what a box could serve: model forms, KV types, drafts, cards; the best first."""
    from boxwright.cli import become, recommending

    become.ask(ask_become_pass)
    recommending.show(
        host,
        inventory,
        every=all,
        offline=offline,
        facts_file=facts,
        model=model,
        wanted=recommending.wish(context, concurrency, image),
        everything=all_choices,
        as_json=json,
    )


@task(
    klass=WordOrNone,
    positional=["gate"],
    help={"gate": "an id that plan or doctor printed", "json": JSON},
)
@told
def explain(c: Any, gate: str = "", json: bool = False) -> None:
    """Tell the story of a gate, an advice or a fault, with its source; without an id, list them."""
    from boxwright.cli import explaining

    explaining.explain(gate, as_json=json)


@task(iterable=["host", "inventory"], help={"host": HOST, "inventory": INVENTORY, "json": JSON})
@told
def validate(c: Any, host: Any, inventory: Any, json: bool = False) -> None:
    """Check an inventory without any connection: every mistake at once, with file and line."""
    from boxwright.cli import validating

    validating.validate(host, inventory, as_json=json)


@task(help={"check": "only say whether inventory/schema.json is fresh"})
@told
def schema(c: Any, check: bool = False) -> None:
    """Write inventory/schema.json (for editors) from the roles' argument_specs."""
    from boxwright.cli import validating

    validating.write_schema(check=check)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "log": "a log to read instead of a host: a file, a pipe, or - for standard input",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def doctor(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    log: str | None = None,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Say what is wrong with a box or a log, why, and what to do, most likely first; touch nothing."""
    from boxwright.cli import become, doctoring

    become.ask(ask_become_pass)
    doctoring.doctor(host, inventory, every=all, log=log, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "watch": "refresh in place until Ctrl-C",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def status(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    watch: bool = False,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Show how boxes fare now: deployments with their load, cards with their heat, and what has drifted."""
    from boxwright.cli import become, statuses

    become.ask(ask_become_pass)
    statuses.status(host, inventory, every=all, watch=watch, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def verify(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """See whether boxes still are as declared and their models answer; change nothing."""
    from boxwright.cli import become, verifying

    become.ask(ask_become_pass)
    verifying.verify(host, inventory, every=all, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "deployment": "only this one",
        "lines": "how many lines of each, from the end",
        "since": "only what is newer: 10m, 2h, 1d, or 2026-11-30",
        "follow": "go on as more comes, until Ctrl-C",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def logs(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    deployment: str | None = None,
    lines: str = "200",
    since: str = "",
    follow: bool = False,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Show what engines wrote, without secrets."""
    from boxwright.cli import become, journals

    become.ask(ask_become_pass)
    journals.logs(
        host,
        inventory,
        every=all,
        deployment=deployment,
        lines=lines,
        since=since,
        follow=follow,
        as_json=json,
    )


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "last": "how many runs of each, the newest first",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def history(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    last: str = "20",
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Tell what ran on boxes: when, who ran it, what it changed, how it ended."""
    from boxwright.cli import become, histories

    become.ask(ask_become_pass)
    histories.history(host, inventory, every=all, last=last, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "output": "the file to write (default: NAME.html here); of several hosts the directory",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def page(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    output: str = "",
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Write one page of HTML about a box, to look at or send on, without secrets, addresses and users."""
    from boxwright.cli import become, paging

    become.ask(ask_become_pass)
    paging.page(host, inventory, every=all, output=output, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "output": "the file to write (default: boxwright-report-TIME.json here)",
        "show": "print all that would be written, not only what is in it",
        "yes": "write it without asking (nobody is asked where there is no terminal)",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def report(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    output: str = "",
    show: bool = False,
    yes: bool = False,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Gather plan, release, logs, facts and bench of boxes in one file, without secrets and names."""
    from boxwright.cli import become, reporting

    become.ask(ask_become_pass)
    reporting.report(host, inventory, every=all, output=output, show=show, yes=yes, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "check": "say what would change, change nothing",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def monitor(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    check: bool = False,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Have boxes seen over time: exporters on those that are watched, Prometheus on the one that watches."""
    from boxwright.cli import become, monitoring

    become.ask(ask_become_pass)
    monitoring.monitor(host, inventory, every=all, check=check, as_json=json)


@task(
    help={
        "format": "grafana or perses",
        "output": "a directory to write the files to",
        "json": JSON,
    }
)
@told
def dashboards(c: Any, format: str = "", output: str = "", json: bool = False) -> None:
    """Write the dashboards of boxes and models for Grafana or Perses."""
    from boxwright.cli import monitoring

    monitoring.dashboards(format_=format, output=output, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "format": "compose, quadlet or k8s",
        "deployment": "only this one",
        "planned": "what a provision would make, instead of what serves",
        "output": "a directory to write the files to, not to the output; of several hosts one each in it",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def export(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    format: str = "",
    deployment: str | None = None,
    planned: bool = False,
    output: str = "",
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Write a box's releases as a compose file, Podman Quadlet units, or Kubernetes manifests."""
    from boxwright.cli import become, exporting

    become.ask(ask_become_pass)
    exporting.export(
        host,
        inventory,
        every=all,
        format_=format,
        deployment=deployment,
        planned=planned,
        output=output,
        as_json=json,
    )


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "deployment": "which one, where a box serves several",
        "concurrency": "requests at once: 1,2,4 (default: by twos up to the declared ones), or none",
        "context": "tokens of a prompt: 1024,8192 (default: by fours up to the declared ones), or none",
        "repeats": "how often each point is measured",
        "output": "tokens of each answer",
        "minutes": "no repeat begins that would end later",
        "picture": "draw the run into this file (.svg)",
        "runs": "list what was measured before, instead of measuring",
        "show": "show a kept run again: last, or its id or the beginning of it",
        "compare": "compare a kept run, or a release's runs, with --against",
        "against": "the other one (default: the last run)",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def bench(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    deployment: str | None = None,
    concurrency: str = "",
    context: str = "",
    repeats: str = "3",
    output: str = "128",
    minutes: str = "20",
    picture: str = "",
    runs: bool = False,
    show: str = "",
    compare: str = "",
    against: str = "last",
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Measure how fast a box answers with the engine's own benchmark, keep it, compare it."""
    from boxwright.cli import become, benching

    benching.refuse_mixture(runs=runs, show=show, compare=compare, against=against, picture=picture)
    become.ask(ask_become_pass)
    if compare:
        benching.comparing(
            host, inventory, every=all, deployment=deployment, first=compare, second=against, as_json=json
        )
    elif runs or show:
        benching.runs(
            host, inventory, every=all, deployment=deployment, show=show, picture=picture, as_json=json
        )
    else:
        benching.bench(
            host,
            inventory,
            every=all,
            deployment=deployment,
            concurrency=concurrency,
            context=context,
            repeats=repeats,
            output=output,
            minutes=minutes,
            picture=picture,
            as_json=json,
        )


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "deployment": "which one, where a box serves several",
        "what": "what is varied: drafts,kv,backend,sequences,batched_tokens,clock,power",
        "objective": "what is to become better: decode, throughput, prefill or tokens_per_joule",
        "concurrency": "requests at once while it is measured (default: what the objective asks for)",
        "context": "tokens of the prompts, for --objective prefill",
        "candidates": "how many settings are tried at most",
        "minutes": "no candidate begins that would end later",
        "repeats": "how often each is measured",
        "output": "tokens of each answer",
        "fresh": "measure all anew, also what a run before that did not come to its end has measured",
        "bisect": "find which option of two declarations costs the speed: --good and --bad",
        "good": "the faster side: a file that declares it, a release, current or declared",
        "bad": "the slower one (default: what is declared)",
        "picture": "draw what was tried into this file (.svg)",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def tune(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    deployment: str | None = None,
    what: str = "",
    objective: str = "decode",
    concurrency: str = "",
    context: str = "",
    candidates: str = "",
    minutes: str = "60",
    repeats: str = "3",
    output: str = "128",
    fresh: bool = False,
    bisect: bool = False,
    good: str = "",
    bad: str = "declared",
    picture: str = "",
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Find the better setting of boxes by measuring; or, with --bisect, the option that costs the speed."""
    from boxwright.cli import become, bisecting, tune_wish, tuning

    wanted = tune_wish.asked(
        candidates=candidates or ("24" if bisect else "8"),
        minutes=minutes,
        objective=objective,
        concurrency=concurrency,
        context=context,
        repeats=repeats,
        output=output,
        fresh=fresh,
        picture=picture,
        as_json=json,
    )
    become.ask(ask_become_pass)
    if bisect:
        tune_wish.refuse_what(what)
        bisecting.bisect(host, inventory, every=all, deployment=deployment, good=good, bad=bad, wanted=wanted)
    else:
        tune_wish.refuse_sides(good, bad)
        tuning.tune(host, inventory, every=all, deployment=deployment, what=what, wanted=wanted)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "deployment": "which one, where a box serves several",
        "prompt": "ask this and end; without it, what standard input has that is no terminal",
        "system": "what to tell the model first",
        "max_tokens": "most tokens of an answer",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def chat(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    deployment: str | None = None,
    prompt: str = "",
    system: str = "",
    max_tokens: str = "",
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Talk with a served model from the terminal, or ask it once, or those of several boxes."""
    from boxwright.cli import become, chatting

    become.ask(ask_become_pass)
    chatting.chat(
        host,
        inventory,
        every=all,
        deployment=deployment,
        prompt=prompt,
        system=system,
        most=max_tokens,
        as_json=json,
    )


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "deployment": "which one, where a box serves several",
        "header": "print it as the HTTP header, for curl -H @-",
        "rotate": "first have the box make a new one, and start the engine anew with it",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def key(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    deployment: str | None = None,
    header: bool = False,
    rotate: bool = False,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Show the API key of a box's endpoint, or change it."""
    from boxwright.cli import become, keys

    become.ask(ask_become_pass)
    if rotate:
        keys.rotate(host, inventory, every=all, deployment=deployment, as_json=json)
    keys.show(host, inventory, every=all, deployment=deployment, header=header, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "deployment": "which one, where a box serves several",
        "to": "id of a release on the box, or its beginning (default: the one before the present)",
        "verbose": VERBOSE,
        "json": JSON,
        "ask_become_pass": BECOME,
    },
)
@told
def rollback(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    deployment: str | None = None,
    to: str | None = None,
    verbose: bool = False,
    json: bool = False,
    ask_become_pass: bool = False,
) -> None:
    """Have an earlier release of a box's engine serve again, examined like a new one."""
    from boxwright.cli import become
    from boxwright.cli import rollback as back

    become.ask(ask_become_pass)
    back.rollback(host, inventory, every=all, deployment=deployment, to=to, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "deep": "read and hash every byte, on all cores",
        "prune": "free what nothing uses, after a question",
        "yes": "free it without the question",
        "verbose": VERBOSE,
        "json": JSON,
    },
)
@told
def models(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    deep: bool = False,
    prune: bool = False,
    yes: bool = False,
    verbose: bool = False,
    json: bool = False,
) -> None:
    """List a box's store: each model's revision, size, how it is verified, and which release uses it."""
    from boxwright.cli import models as store

    store.show(host, inventory, every=all, deep=deep, prune=prune, yes=yes, as_json=json)


@task(
    iterable=["host", "inventory"],
    help={
        "host": HOST,
        "inventory": INVENTORY,
        "all": ALL,
        "model": "only this one, and no image: a deployment's name, the catalog's, or the hub's org/name",
        "check": "say what would move, write nothing",
        "verbose": VERBOSE,
        "json": JSON,
    },
)
@told
def update(
    c: Any,
    host: Any,
    inventory: Any,
    all: bool = False,
    model: str = "",
    check: bool = False,
    verbose: bool = False,
    json: bool = False,
) -> None:
    """Move the lock to the commits and images that are offered now, and say what that changes."""
    from boxwright.cli import updating

    updating.update(host, inventory, every=all, model=model, check=check, as_json=json)


@task(
    help={
        "level": "unit, modules, style, roles, faults, e2e (these by default); kills, upgrades, engines, "
        "weights, tuning, proxies, hosts, debian12",
        "name": "only tests of this name",
        "verbose": "show each test",
    }
)
@told
def test(c: Any, level: str | None = None, name: str | None = None, verbose: bool = False) -> None:
    """Run the tests (all levels need simulated hosts; unit, modules and style take seconds to a minute)."""
    from boxwright.cli import testing

    testing.run(level=level, name=name, verbose=verbose)


@task(
    positional=["name"], help={"name": "the role", "command": "a molecule command instead of the whole test"}
)
@told
def role(c: Any, name: str, command: str = "test") -> None:
    """Run one role's molecule scenario."""
    from boxwright.cli import testing

    testing.role(name, command)


@task(
    help={
        "rig": "the cards they pretend to have: rtx5090 (default), rtx5090x2, rtx3090x2, rtx4090x2, none",
        "hosts": "how many hosts: lab1, lab2, …",
        "suite": "trixie (Debian 13) or bookworm (Debian 12)",
    }
)
@told
def lab_up(c: Any, rig: str | None = None, hosts: str = "1", suite: str = "trixie") -> None:
    """Start simulated GPU hosts, with a package repository, a container registry and a model hub."""
    from boxwright.cli import lab

    lab.up(rig=rig, hosts=hosts, suite=suite)


@task(help={"json": JSON})
@told
def lab_status(c: Any, json: bool = False) -> None:
    """Say which simulated hosts run."""
    from boxwright.cli import lab

    lab.status(as_json=json)


@task(help={"cache": "drop the downloaded and built files too"})
@told
def lab_down(c: Any, cache: bool = False) -> None:
    """Remove the lab: hosts, network, images; nothing else is touched."""
    from boxwright.cli import lab

    lab.down(cache=cache)


@task(
    help={
        "release": "the release to add: 0.33.0",
        "package": "a wheel or archive of sources on this machine instead of the package index's",
        "check": "say what would change, write nothing",
        "json": JSON,
    }
)
@told
def catalog_vllm(c: Any, release: str, package: str = "", check: bool = False, json: bool = False) -> None:
    """Add a release of vLLM to the catalog from its published package, and say what changed."""
    from boxwright.cli import releases

    releases.add("vllm", release, package=package, check=check, as_json=json)


@task(
    help={
        "release": "the release to add: 0.5.23",
        "package": "a wheel or archive of sources on this machine instead of the package index's",
        "check": "say what would change, write nothing",
        "json": JSON,
    }
)
@told
def catalog_sglang(c: Any, release: str, package: str = "", check: bool = False, json: bool = False) -> None:
    """Add a release of SGLang to the catalog from its published package, and say what changed."""
    from boxwright.cli import releases

    releases.add("sglang", release, package=package, check=check, as_json=json)


namespace = Collection(
    init,
    provision,
    plan,
    recommend,
    facts,
    explain,
    status,
    verify,
    logs,
    chat,
    history,
    report,
    page,
    bench,
    export,
    monitor,
    dashboards,
    doctor,
    validate,
    schema,
    key,
    rollback,
    tune,
    models,
    update,
    test,
    role,
)
lab_verbs = Collection("lab")
lab_verbs.add_task(lab_up, "up")
lab_verbs.add_task(lab_status, "status")
lab_verbs.add_task(lab_down, "down")
namespace.add_collection(lab_verbs)
catalog_verbs = Collection("catalog")
catalog_verbs.add_task(catalog_vllm, "vllm")
catalog_verbs.add_task(catalog_sglang, "sglang")
namespace.add_collection(catalog_verbs)
