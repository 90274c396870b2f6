"""All signatures that there are, out of data/*.yml."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import yaml

from boxwright.doctor.signature import Signature, SignatureError, parse

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def signatures() -> tuple[Signature, ...]:
    """Every signature. Raises SignatureError when the data contradict themselves."""
    folder = files("boxwright.doctor") / "data"
    found: dict[str, Signature] = {}
    for file in sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yml")):
        for entry in yaml.load((folder / file).read_text(encoding="utf-8"), Loader=_LOADER):
            signature = parse(entry, file)
            if signature.id in found:
                raise SignatureError(f"{file}: {signature.id} is there twice")
            found[signature.id] = signature
    for signature in found.values():
        unknown = signature.explains - set(found)
        if unknown:
            raise SignatureError(f"{signature.id} explains what is not there: {', '.join(sorted(unknown))}")
    return tuple(found.values())
