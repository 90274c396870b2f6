"""The verbs `catalog.vllm` and `catalog.sglang`: a release joins the catalog from its published package."""

from __future__ import annotations

import json
import re
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

from boxwright import catalog
from boxwright.catalog import compact, history, images, reading
from boxwright.cli.console import WIDTH, say, say_aside, show_json, table
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.releases import sglang, vllm
from boxwright.releases.archive import Archive
from boxwright.releases.forms import OptionError
from boxwright.releases.index import ACCEPT, Package, choose, packages
from boxwright.releases.transport import RemoteFile, Web, index_url

Reader = Callable[[Callable[[str], str | None]], dict[str, Any]]
#: Engine -> what reads its package.
READERS: Mapping[str, Reader] = {"vllm": vllm.read, "sglang": sglang.read}
#: What a table says of itself, where a release makes a new one.
SOURCE = (
    "{engine} options by release, read from the source of each published package (`invoke catalog.{engine}`)."
)
_RELEASE = re.compile(r"\d+\.\d+(\.\d+)*(\.post\d+)?")
_CELL = 24


def add(engine: str, release: str, *, package: str = "", check: bool = False, as_json: bool = False) -> None:
    """Add a release to the catalog of this installation, and say what changed. Raises UserError."""
    release = release.strip().removeprefix("v")
    if not _RELEASE.fullmatch(release):
        raise UserError(
            f"--release {release!r} is no release" if release else "--release is missing",
            ways_out=("a published release: --release 0.33.0",),
            status=EXIT_BAD_INPUT,
        )
    place = data_file(engine)
    old = _read_table(engine, place)
    archive = _local(package, engine, release) if package else _published(engine, release)
    new = merged(engine, release, old, archive)
    text = "".join(f"{line}\n" for line in compact.lines(new))
    changed = not place.exists() or text != place.read_text(encoding="utf-8")
    if changed and not check:
        write(place, text)
    show(engine, release, new, changed=changed, check=check, as_json=as_json)


def data_file(engine: str) -> Path:
    """Where the catalog keeps an engine's table."""
    return Path(catalog.__file__).parent / "data" / f"{engine}.json"


def _read_table(engine: str, place: Path) -> Mapping[str, Any]:
    if not place.exists():
        return {"source": SOURCE.format(engine=engine), "releases": [], "options": {}}
    found: Mapping[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return found


def merged(engine: str, release: str, old: Mapping[str, Any], archive: Archive) -> dict[str, Any]:
    """The table with the release that an archive holds. Raises UserError where it cannot be read."""
    try:
        read = READERS[engine](archive.read)
    except OptionError as error:
        shown = error.problems[:5] + (
            [f"and {len(error.problems) - 5} more"] if len(error.problems) > 5 else []
        )
        raise UserError(
            f"the options of {engine} {release} cannot be told from its source; the catalog is as it was",
            why="\n  ".join(shown),
            ways_out=(f"report it: boxwright/releases/{engine}.py has to learn this release",),
        ) from error
    names = {part: frozenset(value) for part, value in read.items() if part != "options"}
    build = archive.build()
    return history.added(old, release, history.Release(read["options"], names, build))


def write(place: Path, text: str) -> None:
    """Replace the file at once, so that nobody ever reads half of it. Raises UserError."""
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=place.parent, delete=False) as file:
            file.write(text)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(place)
    except OSError as error:
        raise UserError(
            f"{place} cannot be written: {error.strerror}", ways_out=("run it where the file is yours",)
        ) from error


def _local(package: str, engine: str, release: str) -> Archive:
    path = Path(package)
    named = Package(path.name, "").version(engine)
    if named is not None and named != release:
        raise UserError(
            f"--package {package} is release {named}, and --release says {release}",
            ways_out=(f"--release {named}",),
            status=EXIT_BAD_INPUT,
        )
    try:
        return Archive(path.name, BytesIO(path.read_bytes()))
    except OSError as error:
        raise UserError(
            f"--package {package} cannot be read: {error.strerror}",
            ways_out=("name a wheel or an archive of sources",),
            status=EXIT_BAD_INPUT,
        ) from error


def _published(engine: str, release: str) -> Archive:
    web = Web(index_url())
    address = f"{web.index}{engine}/"
    status, headers, body = web.get(address, {"Accept": ACCEPT}, f"the list of {engine}'s releases")
    if status != 200:
        raise UserError(
            f"the package index answered HTTP {status} for {engine}",
            ways_out=(
                "see that PIP_INDEX_URL is an index of Python packages",
                "name the file: --package FILE",
            ),
        )
    found = packages(engine, body, headers.get("content-type", ""), address)
    chosen = choose(engine, release, found)
    say_aside(f"reading {chosen.filename}" + (" (its makers have taken it back)" if chosen.yanked else ""))
    file = RemoteFile(web, chosen.url, chosen.filename)
    if file.body is not None:
        return Archive(chosen.filename, BytesIO(file.body))
    # Buffered: a raw file may give less than it is asked for, at the end of each part.
    return Archive(chosen.filename, BufferedReader(file))


def show(
    engine: str, release: str, new: Mapping[str, Any], *, changed: bool, check: bool, as_json: bool
) -> None:
    """Print what the release is and how it differs from the one before."""
    known = history.releases(new)
    before = history.before(new, release)
    changes = history.differences(known[before], known[release]) if before else []
    about = image(engine, release, known[release].build)
    if as_json:
        show_json(
            {
                "engine": engine,
                "release": release,
                "before": before,
                "changed": changed,
                "written": changed and not check,
                "options": len(known[release].options),
                **about,
                "changes": [one.to_json() for one in changes],
            }
        )
        return
    done = "would be added to" if check else "was added to"
    say(f"{engine} {release}: {len(known[release].options)} options; " + (
        f"it {done} {data_file(engine).name}" if changed else "the catalog has it already"
    ))  # fmt: skip
    cuda = about["cuda"] or "unknown"
    driver = f"driver {about['minimum_driver']} or newer" if about["minimum_driver"] else "driver unknown"
    torch = about["torch"] or "unknown"
    say(f"  image    {about['image']}")
    say(f"  needs    CUDA {cuda}: {about['cuda_from']}; {driver}; PyTorch {torch}")
    if not before:
        return
    say()
    say(f"changed since {before}" if changes else f"nothing changed since {before}")
    options = [one for one in changes if one.part == "options"]
    rows = [_row(one) for one in options if one.kind != "aliases"]
    if rows:
        table(["option", "change", "before", "now"], rows)
    if len(rows) < len(options):
        say(f"and {len(options) - len(rows)} options have other short or opposite names")
    for part in dict.fromkeys(one.part for one in changes if one.part != "options"):
        for kind in ("added", "removed"):
            names = [one.name for one in changes if (one.part, one.kind) == (part, kind)]
            if names:
                text = f"{part.replace('_', ' ')} {kind}: {', '.join(names)}"
                say(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_long_words=False))


def _row(change: history.Change) -> list[str]:
    return [change.name, change.kind, _cell(change.before, change), _cell(change.after, change)]


def _cell(value: Any, change: history.Change) -> str:
    if value is None:
        return "" if change.kind in ("added", "removed") else "none"
    if change.kind == "choices" and isinstance(value, list):
        other = change.after if value is change.before else change.before
        own = [str(one) for one in value if one not in (other or [])]
        text = (("-" if value is change.before else "+") + ", ".join(own)) if own else f"{len(value)} choices"
    elif isinstance(value, Mapping):
        text = " ".join(str(value[key]) for key in ("type", "default") if value.get(key) not in (None, ""))
    else:
        text = "" if value == change.name else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def image(engine: str, release: str, build: Mapping[str, str]) -> dict[str, Any]:
    """The release's image and what it needs: by the catalog's tags, compared with the package's metadata."""
    known = images.load()
    rule = next((one for one in known.rules if one["engine"] == engine), None)
    if rule is None:
        return {
            "image": None,
            "cuda": None,
            "cuda_from": "no image known",
            "minimum_driver": None,
            **_torch(build),
        }
    reference = f"{rule['name']}:v{release}"
    cuda = known.identify(reference).cuda
    said = build.get("cuda")
    if said and cuda and reading.version(cuda)[0] != int(said):
        cuda, source = None, f"the package needs CUDA {said}, the catalog's tags say {cuda}"
    elif said and cuda:
        source = "by its tags, and the package agrees"
    else:
        source = "by the tags of the releases before it"
    branch = known.driver_branch(cuda) if cuda else None
    return {"image": reference, "cuda": cuda, "cuda_from": source, "minimum_driver": branch, **_torch(build)}


def _torch(build: Mapping[str, str]) -> dict[str, str | None]:
    return {"torch": build.get("torch")}
