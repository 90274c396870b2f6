"""Making shared libraries smaller: what the loader never reads is cut off."""

from __future__ import annotations

import struct
from pathlib import Path

#: Offsets in the header of a 64-bit little-endian ELF file (elf(5)): e_phoff, e_shoff, e_phentsize, e_phnum.
_PHOFF, _SHOFF, _PHENTSIZE, _PHNUM, _SHNUM = 32, 40, 54, 56, 60


def strip(path: Path) -> int:
    """Cut off all that lies behind the segments: section headers, symbols and debugging tables. Bytes saved.

    The dynamic loader works from the program headers alone; what it needs of symbols lies in segments. Files
    that are not 64-bit little-endian ELF are left as they are.
    """
    with path.open("r+b") as stream:
        header = stream.read(64)
        if header[:6] != b"\x7fELF\x02\x01" or len(header) < 64:
            return 0
        start = int(struct.unpack_from("<Q", header, _PHOFF)[0])
        entry_size, count = struct.unpack_from("<HH", header, _PHENTSIZE)
        stream.seek(start)
        table = stream.read(entry_size * count)
        end = start + len(table)
        for place in range(0, len(table), entry_size):
            # p_offset, and behind p_vaddr and p_paddr p_filesz
            offset, _, _, size = struct.unpack_from("<QQQQ", table, place + 8)
            end = max(end, int(offset + size))
        saved = stream.seek(0, 2) - end
        stream.truncate(end)
        # No section headers any more: their offset, number and the place of their names become 0.
        stream.seek(_SHOFF)
        stream.write(bytes(8))
        stream.seek(_SHNUM)
        stream.write(bytes(4))
    return saved
