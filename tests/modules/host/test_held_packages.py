import json

import pytest
from ansible.module_utils import apt, hold_records
from ansible.module_utils.apt_command import resolve
from ansible.module_utils.apt_texts import blacklist_text
from ansible.module_utils.packages import PackagesError, Rules, Step, Wanted, fits, refusals
from host_doubles import World

DRIVERS = ["570.195.03-1", "580.95.05-1", "580.105.08-1", "595.71.05-1"]
FAMILY = ["nvidia-*", "libcuda1", "!nvidia-container-*"]


@pytest.fixture
def host(root, tmp_path, monkeypatch, module):
    """A host on which the driver needs a library and dkms; call(**arguments) runs the module."""
    world = World(
        tmp_path,
        monkeypatch,
        "apt",
        installed={"bash": "5.2"},
        held=[],
        unfinished=[],
        automatic=["libcuda1", "dkms"],
        conflicts={"nvidia-driver": ["nvidia-smi"]},
        depends={"nvidia-driver": ["libcuda1", "dkms"]},
        repository={
            "nvidia-driver": DRIVERS,
            "libcuda1": DRIVERS,
            "dkms": ["3.3"],
            "headers": ["6.1"],
            "cuda-toolkit": ["12.8.1-1"],
            "cuda-nvcc": ["12.8.93-1"],
        },
    )
    monkeypatch.setattr(apt, "LOCKS", ())
    world.call = module(
        "held_packages",
        name="driver",
        packages=["nvidia-driver"],
        version="580.*",
        hold=FAMILY,
        pin=True,
        allow_downgrade=True,
    )
    world.record = lambda: json.loads((root / "var/lib/boxwright/holds/driver.json").read_text())
    world.files = lambda: sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
    return world


def transactions(host):
    """apt-get calls that changed packages."""
    return [
        words
        for words in host.calls("apt-get")
        if {"install", "remove", "purge"} & set(words) and not {"--simulate", "--download-only"} & set(words)
    ]


def test_installs_the_branch_in_one_transaction_and_holds_it(host, root):
    result = host.call(alongside=["headers"])
    assert result["changed"]
    assert host["installed"] == {
        "bash": "5.2",
        "dkms": "3.3",
        "headers": "6.1",
        "libcuda1": "580.105.08-1",
        "nvidia-driver": "580.105.08-1",
    }
    assert host["held"] == ["libcuda1", "nvidia-driver"]
    assert len(transactions(host)) == 1
    assert host.record() == {
        "declared": ["nvidia-driver"],
        "holds": ["libcuda1", "nvidia-driver"],
        "installed": ["dkms", "headers", "libcuda1", "nvidia-driver"],
        "removed": {},
        "changed": {},
        "automatic": [],
    }
    pin = (root / "etc/apt/preferences.d/boxwright-held-driver.pref").read_text()
    assert "Package: nvidia-driver nvidia-* libcuda1\nPin: version 580.*\nPin-Priority: 1001\n" in pin
    assert '"^nvidia-.*$";' in (root / "etc/apt/apt.conf.d/52boxwright-driver").read_text()


def test_second_run_only_reads(host):
    host.call(alongside=["headers"])
    host.set(calls=[])
    result = host.call(alongside=["headers"])
    assert not result["changed"]
    assert {call[0] for call in host["calls"]} <= {"dpkg-query", "dpkg", "apt-mark"}


def test_a_newer_version_of_the_branch_is_left_until_asked_for(host):
    host.call()
    host.set(repository={**host["repository"], "nvidia-driver": [*DRIVERS[:3], "580.200.01-1", DRIVERS[3]]})
    assert not host.call()["changed"]


def test_library_follows_although_its_dependency_names_no_version(host):
    host.call(version="595.*")
    result = host.call()
    assert "downgrade libcuda1 595.71.05-1 -> 580.105.08-1" in result["steps"]
    assert host["installed"]["libcuda1"] == "580.105.08-1"
    assert len(transactions(host)) == 2


def test_check_mode_tells_and_touches_nothing(host):
    before = host["installed"]
    result = host.call(check=True)
    assert result["changed"]
    assert "install nvidia-driver 580.105.08-1" in result["steps"]
    assert host["installed"] == before
    assert host["held"] == []
    assert host.files() == []


def test_check_mode_before_the_source_is_there(host):
    host.set(repository={})
    result = host.call(check=True, source_pending=True)
    assert result["steps"] == ["install nvidia-driver 580.*"]
    assert "in none of the host's package sources" in host.call(check=True)["msg"]


def test_a_version_that_is_nowhere_lists_what_is_there(host):
    host.call()
    before, files = host["installed"], host.files()
    result = host.call(version="580.99.01-*")
    assert "no version 580.99.01-*; there is 595.71.05-1, 580.105.08-1, 580.95.05-1" in result["msg"]
    assert (host["installed"], host.files()) == (before, files)


def test_old_lists_are_read_anew_before_giving_up(host):
    host.set(repository={**host["repository"], "nvidia-driver": []}, after_update={"nvidia-driver": DRIVERS})
    assert host.call()["changed"]
    assert host["installed"]["nvidia-driver"] == "580.105.08-1"


def test_a_package_that_left_the_mirror_is_sought_again(host):
    host.set(download_fails_once=True)
    assert host.call()["changed"]


def test_a_failed_download_changes_nothing(host):
    host.set(download_fails=True)
    result = host.call()
    assert "cannot be downloaded, nothing was changed" in result["msg"]
    assert host["installed"] == {"bash": "5.2"}
    assert host.files() == []


def test_a_persons_hold_is_respected_and_named(host):
    host.set(installed={"libcuda1": "570.195.03-1"}, held=["libcuda1"])
    result = host.call()
    assert (
        "upgrade libcuda1 570.195.03-1 -> 580.105.08-1 (held by a person, not by Boxwright)" in result["msg"]
    )
    assert host["installed"] == {"libcuda1": "570.195.03-1"}
    assert host.files() == []


def test_a_persons_hold_that_is_no_obstacle_stays_theirs(host):
    host.set(installed={"libcuda1": "580.105.08-1"}, held=["libcuda1"])
    host.call()
    assert host.record()["holds"] == ["nvidia-driver"]
    host.call(state="absent", packages=[])
    assert host["held"] == ["libcuda1"]


def test_another_groups_hold_is_named_as_such(host, root):
    record = hold_records.Record(str(root), "other")
    record.holds = ["libcuda1"]
    record.save()
    host.set(installed={"libcuda1": "570.195.03-1"}, held=["libcuda1"])
    assert "held for other" in host.call()["msg"]


def test_a_lifted_hold_is_set_again(host):
    host.call()
    host.set(held=[])
    assert host.call()["changed"]
    assert host["held"] == ["libcuda1", "nvidia-driver"]


def test_our_hold_is_ours_even_if_the_run_died_after_it(host):
    host.set(dies=True)
    assert "half-way" in host.call()["msg"]
    assert "nvidia-driver" in host.record()["installed"]
    host.set(dies=False)
    result = host.call()
    assert result["repaired"]
    assert host["installed"]["nvidia-driver"] == "580.105.08-1"
    assert not host.call()["changed"]


@pytest.fixture
def unbuildable(host):
    """The host on branch 570, on which the one package of 580 could not be brought to its end."""
    host.call(version="570.*")
    host.set(dies=True)
    assert "goes back if the declaration does" in host.call()["msg"]
    host.set(dies=False, unrepairable="libcuda1")
    assert host["unfinished"] == ["libcuda1"]
    return host


def test_a_package_that_never_gets_done_is_named_again(unbuildable):
    assert "cannot be brought to an end (dpkg --configure -a): libcuda1" in unbuildable.call()["msg"]
    assert unbuildable["installed"]["libcuda1"] == "580.105.08-1"


def test_what_dpkg_said_is_told_where_apt_cannot_mend_it_either(unbuildable):
    unbuildable.set(impossible_to_mend="E: Internal Error, No file name for libcuda1\n")
    said = unbuildable.call()["msg"]
    assert "dpkg: error processing package libcuda1 (--configure):" in said
    assert "E: Internal Error, No file name for libcuda1" in said


def test_back_from_a_package_that_never_gets_done(unbuildable):
    result = unbuildable.call(version="570.*")
    assert unbuildable["installed"]["libcuda1"] == "570.195.03-1"
    assert result["repaired"] == []
    unbuildable.set(unfinished=[])
    assert not unbuildable.call(version="570.*")["changed"]


def test_a_change_between_sources_that_died_leaves_what_the_declared_ones_need(host, root):
    """The names of the one before are on record still, and one of them is what the new one depends upon."""
    host.call()
    record = hold_records.Record(str(root), "driver")
    record.declared = ["dkms", "libcuda1", "nvidia-driver"]
    record.save()
    host.call()
    assert set(host["installed"]) == {"bash", "libcuda1", "nvidia-driver"}
    assert not host.call()["changed"]


def test_settings_of_what_holds_data_stay_and_those_of_the_others_go(host):
    host.call()
    host.call(state="absent", packages=[], unpurged=["libcuda*"])
    assert host["installed"] == {"bash": "5.2"}
    (removal,) = transactions(host)[1:]
    assert "remove" in removal
    (purged,) = [words for words in host.calls("dpkg") if words[0] == "--purge"]
    assert sorted(purged[1:]) == ["dkms", "nvidia-driver"]
    host.call()
    host.call(state="absent", packages=[])
    assert "purge" in transactions(host)[-1]


def test_what_packages_make_goes_with_them_unless_it_was_there_before(host, root):
    """Of a toolkit that writes its settings when it is set up, and makes directories when it runs."""
    places = [
        "/etc/tool",
        "/etc/tool/config.toml",
        "/etc/net",
        "/etc/net/net.d",
        "/run/cards.yaml",
        "/etc/none",
    ]
    makes = {"nvidia-driver": places, "bash": ["/etc/bash"]}
    (root / "run").mkdir(exist_ok=True)
    (root / "run/cards.yaml").write_text("somebody's")
    host.call(makes=makes)
    assert host.record()["made"] == {"nvidia-driver": [one for one in places if one != "/run/cards.yaml"]}
    for folder in ("etc/tool", "etc/net/net.d", "etc/bash"):
        (root / folder).mkdir(parents=True)
    (root / "etc/tool/config.toml").write_text("made")
    host.call(makes=makes, version="595.*")
    assert not host.call(makes=makes, version="595.*")["changed"]
    (root / "etc/net/theirs.conf").write_text("somebody's")
    host.call(state="absent", packages=[], check=True)
    assert (root / "etc/tool/config.toml").exists()
    host.call(state="absent", packages=[])
    left = [str(path.relative_to(root)) for path in sorted(root.rglob("*"))]
    assert not [one for one in left if "tool" in one or "net.d" in one]
    assert {"etc/net/theirs.conf", "run/cards.yaml", "etc/bash"} <= set(left)


def test_paths_that_are_no_list_are_refused(host):
    said = host.call(makes={"nvidia-driver": "/etc/tool"})["msg"]
    assert "makes.nvidia-driver is a text, and must be a list. Nothing was changed" in said


def test_nothing_that_is_declared_is_ever_removed(host):
    host.set(conflicts={"nvidia-driver": ["libcuda1"]}, depends={}, installed={"libcuda1": "580.105.08-1"})
    said = host.call(packages=["libcuda1", "nvidia-driver"], may_remove=["*"])["msg"]
    assert "would remove libcuda1, which is declared. Nothing was changed." in said


def test_uninstall_takes_a_package_that_never_got_done(unbuildable):
    unbuildable.call(state="absent", packages=[])
    assert unbuildable["installed"] == {"bash": "5.2"}


def test_what_cannot_be_repaired_is_named(host):
    host.set(
        installed={"broken": "1"}, unfinished=["broken"], unrepairable="broken", repository={"broken": ["1"]}
    )
    assert "cannot be brought to an end (dpkg --configure -a): broken" in host.call()["msg"]


def test_conflicting_package_leaves_only_if_it_may(host):
    host.set(installed={"nvidia-smi": "550-2"})
    assert "nobody asked to remove: nvidia-smi" in host.call()["msg"]
    assert host["installed"] == {"nvidia-smi": "550-2"}
    host.call(may_remove=["nvidia-*"])
    assert "nvidia-smi" not in host["installed"]
    assert host.record()["removed"] == {"nvidia-smi": "550-2"}


def test_downgrades_only_where_allowed(host):
    host.call(version="595.*")
    assert "versions would go down" in host.call(allow_downgrade=False)["msg"]


def test_a_package_declared_no_more_leaves_with_what_only_it_needed(host):
    host.set(
        depends={**host["depends"], "cuda-toolkit": ["cuda-nvcc"]},
        automatic=["libcuda1", "dkms", "cuda-nvcc"],
    )
    host.call(packages=["nvidia-driver", "cuda-toolkit=12.8.*"])
    assert host["installed"]["cuda-nvcc"] == "12.8.93-1"
    host.call()
    assert not {"cuda-toolkit", "cuda-nvcc"} & set(host["installed"])
    assert host["installed"]["dkms"] == "3.3"


def test_absent_brings_back_the_state_before(host):
    before = host["installed"]
    host.call(alongside=["headers"])
    assert host.call(state="absent")["changed"]
    assert host["installed"] == before
    assert host["held"] == []
    assert host.files() == []
    assert not host.call(state="absent")["changed"]


def test_absent_leaves_what_was_there_before_us(host):
    host.set(installed={"dkms": "3.3"})
    host.call()
    host.call(state="absent")
    assert host["installed"] == {"dkms": "3.3"}


@pytest.fixture
def distribution(host):
    """The distribution's driver, of which the library came along by itself."""
    before = {"bash": "5.2", "nvidia-smi": "550.1-2", "nvidia-alternative": "550.1-2", "libcuda1": "550.1-2"}
    repository = {**host["repository"], "nvidia-smi": ["550.1-2"], "nvidia-alternative": ["550.1-2"]}
    repository["libcuda1"] = ["550.1-2", *DRIVERS]
    host.set(installed=before, repository=repository, automatic=["libcuda1", "nvidia-alternative", "dkms"])
    return before


def test_absent_brings_back_the_packages_of_before_us(host, distribution):
    host.call(may_remove=["nvidia-*"], strays="[0-9][0-9][0-9].[0-9]*")
    assert set(host["installed"]) == {"bash", "nvidia-driver", "libcuda1", "dkms"}
    assert host["installed"]["libcuda1"] == "580.105.08-1"
    # A second branch in between must not make the first one look as if it had been there before.
    host.call(version="595.*", may_remove=["nvidia-*"])
    result = host.call(state="absent", packages=[], version=None)
    assert host["installed"] == distribution
    assert result["not_restored"] == ""
    assert {"libcuda1", "nvidia-alternative"} <= set(host["automatic"])
    assert "nvidia-smi" not in host["automatic"]
    assert host.files() == []


def test_what_came_along_newer_is_not_taken_back(host):
    """A library of everybody's: older again, it could lack what others need by now."""
    host.set(installed={"libc6": "2.36-9"}, depends={"nvidia-driver": ["libc6=2.36-10"]})
    host.set(repository={**host["repository"], "libc6": ["2.36-9", "2.36-10"]})
    host.call()
    assert host.call(state="absent", packages=[], version=None)["not_restored"] == ""
    assert host["installed"] == {"libc6": "2.36-10"}


def test_absent_in_check_mode_tells_what_comes_back(host, distribution):
    host.call(may_remove=["nvidia-*"])
    there, files = host["installed"], host.files()
    result = host.call(check=True, state="absent", packages=[], version=None)
    assert "install nvidia-smi 550.1-2" in result["steps"]
    assert "downgrade libcuda1 580.105.08-1 -> 550.1-2" in result["steps"]
    assert (host["installed"], host.files()) == (there, files)


def test_absent_tells_what_no_source_has_any_more(host, distribution):
    host.call(may_remove=["nvidia-*"])
    host.set(repository={**host["repository"], "nvidia-smi": []})
    result = host.call(state="absent", packages=[], version=None)
    assert "nvidia-smi 550.1-2 is in none of the host's package sources" in result["not_restored"]
    assert "nvidia-driver" not in host["installed"]
    assert host["installed"]["libcuda1"] == "550.1-2"


def test_a_package_that_returns_is_not_ours_to_remove(host, distribution):
    host.call(may_remove=["nvidia-*"])
    host.set(conflicts={}, repository={**host["repository"], "nvidia-smi": ["550.1-2", "580.1-1"]})
    host.call(packages=["nvidia-driver", "nvidia-smi=580.*"])
    assert host.record()["changed"]["nvidia-smi"] == "550.1-2"
    assert "nvidia-smi" not in host.record()["installed"]
    host.call(state="absent", packages=[], version=None)
    assert host["installed"] == distribution


def test_what_the_declared_branch_has_none_of_leaves_with_the_old_one(host, distribution):
    """The glue of another repository's driver, which the new one's packages do not name."""
    host.set(installed={**distribution, "nvidia-support": "20220217+3"}, conflicts={})
    result = host.call(may_remove=["nvidia-*"], strays="[0-9][0-9][0-9].[0-9]*")
    assert "remove nvidia-alternative 550.1-2" in result["steps"]
    assert "nvidia-support" in host["installed"]
    assert not host.call(may_remove=["nvidia-*"], strays="[0-9][0-9][0-9].[0-9]*")["changed"]


def test_a_replaced_package_leaves_although_the_declared_version_has_one(host):
    """The other kernel modules: both repositories have them, and the two conflict."""
    host.set(installed={"nvidia-dkms": "570.1-1"}, conflicts={"nvidia-driver": ["nvidia-dkms"]})
    host.set(repository={**host["repository"], "nvidia-dkms": ["570.1-1", "580.105.08-1"]})
    result = host.call(replaces=["nvidia-dkms"], may_remove=["nvidia-*"])
    assert "remove nvidia-dkms 570.1-1" in result["steps"]
    assert len(transactions(host)) == 1


def test_releases_to_be_left_alone_come_first_in_the_preferences(host, root):
    host.call(avoid=["o=Debian"])
    text = (root / "etc/apt/preferences.d/boxwright-held-driver.pref").read_text()
    assert text.index("Pin: release o=Debian\nPin-Priority: -1") < text.index("Pin: version 580.*")
    assert not host.call(avoid=["o=Debian"])["changed"]


def test_a_source_made_for_nothing_goes_again(host, root):
    source = root / "etc/apt/sources.list.d/boxwright-cuda.sources"
    source.parent.mkdir(parents=True)
    source.write_text("URIs: http://there/x/\n")
    lists = root / "var/lib/apt/lists"
    lists.mkdir(parents=True)
    (lists / "there_x_._Packages").touch()
    assert "no version 1.*" in host.call(check=True, version="1.*", new_source="boxwright-cuda")["msg"]
    assert source.exists()
    assert "no version 1.*" in host.call(version="1.*", new_source="boxwright-cuda")["msg"]
    assert host.files() == []


def test_a_source_stays_where_packages_have_changed(host, root):
    source = root / "etc/apt/sources.list.d/boxwright-cuda.sources"
    source.parent.mkdir(parents=True)
    source.write_text("URIs: http://there/x/\n")
    host.set(dies=True)
    assert "half-way" in host.call(new_source="boxwright-cuda")["msg"]
    assert source.exists()


def test_a_damaged_record_is_said(host, root):
    host.call()
    (root / "var/lib/boxwright/holds/driver.json").write_text("{")
    assert "is damaged" in host.call()["msg"]


@pytest.mark.parametrize(
    ("wanted", "arguments"),
    [
        (Wanted("a", None), ["a"]),
        (Wanted("a", "2.*"), ["a=2.1"]),
        (Wanted("a", "1.0"), ["a=1.0"]),
    ],
)
def test_resolve(wanted, arguments):
    assert resolve([wanted], {"a": ["2.1", "2.0", "1.0"]}) == arguments


RPM = "3:580.105.08-1.el9"


@pytest.mark.parametrize(
    ("version", "wanted", "meant"),
    [
        (RPM, "3:580.105.08-1.el9", True),
        (RPM, "580.105.08-1.el9", True),
        (RPM, "580.105.08-1.el9.x86_64", True),
        (RPM, "3:580.105.08-1.el9.noarch", True),
        (RPM, "580.*", True),
        (RPM, "3:580.105.08-*", True),
        (RPM, "580.105.08-1.*", True),
        (RPM, "2:580.105.08-1.el9", False),
        (RPM, "580.105.08-2.el9", False),
        (RPM, "580.105.08", False),
        (RPM, "80.105.08-1.el9", False),
        ("580.105.08-1", "580.105.08-1", True),
        ("580.105.08-0ubuntu1", "580.*-[01]ubuntu[0-9]", True),
        ("580.105.08-1", "3:580.105.08-1", False),
        ("5:28.5.1-1~debian.12~bookworm", "[0-9]:28.5.1[+-]*", True),
    ],
)
def test_a_version_as_people_write_it(version, wanted, meant):
    assert fits(version, wanted) is meant


def test_resolve_tells_every_package_that_is_missing():
    with pytest.raises(PackagesError, match=r"a is in none.*\nb has no version 3"):
        resolve([Wanted("a", None), Wanted("b", "3")], {"b": ["1"]})


def test_refusals_are_all_told():
    steps = [
        Step("upgrade", "x", "1", "2"),
        Step("downgrade", "y", "2", "1"),
        Step("remove", "z", "1", None),
    ]
    told = refusals(
        steps, Rules(None, [], {"x": "by a person"}, [], [], downgrade=False), "apt", "apt-mark unhold NAME"
    )
    assert len(told) == 3
    assert refusals(steps, Rules(None, [], {}, ["z"], [], downgrade=True), "apt", "") == []


def test_blacklist_is_what_unattended_upgrades_matches():
    text = blacklist_text(["lib++", "nvidia-driver"], ["nvidia-*", "!nvidia-container-*"])
    assert '"^lib\\\\+\\\\+$";' in text
    assert '"^nvidia-.*$";' in text
    assert "container" not in text
    assert "nvidia-driver" not in text
