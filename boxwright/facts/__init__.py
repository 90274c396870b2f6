"""Typed facts of a host: what one trip of the module host_facts brought, parsed without any I/O."""

from boxwright.facts.model import HostFacts
from boxwright.facts.parse import parse

__all__ = ["HostFacts", "parse"]
