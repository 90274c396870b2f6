"""Recipes of images, and the tar archives that files travel in."""

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from boxwright.errors import UserError
from boxwright.lab import bootstrap, images
from boxwright.lab.machine import Machine, boot_files
from boxwright.lab.payload import Payload, archive, links
from boxwright.lab.state import Lab

UNIT = "[Unit]\nDescription=x\n\n[Install]\nWantedBy=sysinit.target multi-user.target\n"


def test_a_recipe_is_known_by_everything_in_it():
    recipe = images.host_recipe("trixie")
    changed = [
        replace(recipe, packages=(*recipe.packages, "vim")),
        replace(recipe, setup=recipe.setup + "#"),
        replace(recipe, suite="bookworm"),
        replace(recipe, base="other"),
    ]
    assert len({recipe.digest, *(other.digest for other in changed)}) == 5
    assert images.host_recipe("trixie").digest == recipe.digest


def test_the_depot_follows_the_host_image():
    assert images.host_recipe("trixie").digest in images.depot_recipe().base


def test_file_and_tag_carry_the_digest():
    recipe, lab = images.host_recipe("bookworm"), Lab(root=Path("/src/x"), cache=Path("/cache"))
    assert recipe.file(lab.cache) == Path(f"/cache/images/host-bookworm-{recipe.digest}.tar")
    assert recipe.tag(lab) == f"bw-{lab.id}-host-bookworm:{recipe.digest}"


def test_an_unknown_suite_names_the_known_ones():
    with pytest.raises(UserError, match="'sid'") as error:
        images.host_recipe("sid")
    assert error.value.ways_out == ("one of: trixie, bookworm",)


def test_sources_are_signed_and_can_come_from_another_mirror():
    own = bootstrap.sources("trixie")
    assert all("signed-by=" in line for line in own)
    assert [line.split()[-2] for line in own] == ["trixie", "trixie-updates", "trixie-security"]
    other = bootstrap.sources("trixie", "http://mirror.example/debian")
    assert [line.split()[2] for line in other] == [
        "http://mirror.example/debian",
        "http://mirror.example/debian",
        "http://mirror.example/debian-security",
    ]


def test_an_archive_holds_files_with_mode_and_owner_and_enables_units():
    data = archive(
        [
            Payload.text("/etc/systemd/system/lab.service", UNIT),
            Payload("/usr/local/sbin/tool", b"\x7fELF", mode=0o755),
            Payload.text("/home/ops/.ssh/authorized_keys", "key\n", mode=0o600, owner=1000),
        ]
    )
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = {member.name: member for member in tar}
    assert members["usr/local/sbin/tool"].mode == 0o755
    assert members["home/ops/.ssh/authorized_keys"].uid == 1000
    for target in ("sysinit.target", "multi-user.target"):
        assert (
            members[f"etc/systemd/system/{target}.wants/lab.service"].linkname
            == "/etc/systemd/system/lab.service"
        )


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("/etc/systemd/system/a.service", "[Install]\nRequiredBy=b.target\n", ["b.target.requires"]),
        ("/etc/systemd/system/a.service", "[Unit]\nWantedBy=b.target\n", []),
        ("/etc/systemd/system/a.service.d/x.conf", UNIT, []),
        ("/etc/motd", UNIT, []),
    ],
)
def test_links_that_enable_a_unit(path, text, found):
    assert [Path(link).parent.name for link in links(Payload.text(path, text))] == found


def test_a_machine_is_known_by_what_it_is_made_of_but_not_by_its_address():
    files = [Payload.text("/etc/a", "1")]
    machine = Machine(name="h", role="host", image="i", address="10.0.0.1", labels={}, ports={80: 1})
    digest = machine.digest(files)
    assert replace(machine, address="10.0.0.2", labels={"a": "b"}).digest(files) == digest
    others = [
        replace(machine, image="j").digest(files),
        replace(machine, ports={80: 2}).digest(files),
        machine.digest([Payload.text("/etc/a", "2")]),
        machine.digest([Payload.text("/etc/a", "1", mode=0o600)]),
    ]
    assert len({digest, *others}) == 5


def test_boot_files_are_enabled():
    names = [link for file in boot_files() for link in links(file)]
    assert names == ["/etc/systemd/system/sysinit.target.wants/lab-boot-id.service"]
