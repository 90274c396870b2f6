"""Facts as a page: all that the verb's help names, each filesystem once, no line too long."""

from boxwright.cli.drawing import draw_facts
from boxwright.facts import HostFacts
from boxwright.facts.model import Docker, ModelFiles, OperatingSystem, Release
from boxwright.facts.room import Filesystem, Memory

GIB = 1024**3
FACTS = HostFacts(
    "box1",
    OperatingSystem("debian", "13", "trixie", "x86_64", "6.12"),
    docker=Docker(version="26.1.5", toolkit_version="1.19.0", running=True),
    memory=Memory(64 * GIB, 48 * GIB),
    filesystems=(
        Filesystem("/", "/", "sda", 500 * GIB, 100 * GIB),
        Filesystem("/var/lib/boxwright", "/srv", "sdb", 900 * GIB, 700 * GIB),
        Filesystem("/var/lib/docker", "/", "sda", 500 * GIB, 100 * GIB),
    ),
    models=(
        ModelFiles("org/whole@r", "store", repo="org/whole", complete=True),
        ModelFiles("org/gone", "hub", error="not-found", detail="the hub has no such repository"),
    ),
    releases=(Release("qwen", "e23e", current=True), Release("qwen", "0aa1", current=False)),
)


def test_a_page_of_facts(capsys):
    draw_facts("box1", FACTS)
    lines = capsys.readouterr().out.splitlines()
    for line in (
        "  docker   26.1.5, container toolkit 1.19.0",
        "  memory   64.0 GiB, 48.0 GiB available",
        "  room     100.0 GiB of 500.0 GiB free for /, /var/lib/docker",
        "  room     700.0 GiB of 900.0 GiB free for /var/lib/boxwright",
        "  model    org/whole: 0 MiB in the store, every byte verified",
        "  model    org/gone: the hub has no such repository",
        "  release  e23e of qwen, live",
        "  release  0aa1 of qwen",
        "  cards    none found",
    ):
        assert line in lines
    assert max(map(len, lines)) <= 100
