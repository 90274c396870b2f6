"""`invoke catalog.vllm`: from a package index to the catalog, and every way in which that can fail."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from boxwright.catalog.options import OptionTable
from boxwright.cli import releases
from boxwright.errors import UserError
from boxwright.releases import transport

WHEEL = "vllm-0.34.0-cp38-abi3-manylinux_2_28_x86_64.whl"
DATA = Path(__file__).parent / "data"


def source(name="vllm-0.33.0.tar.gz"):
    """The packed files of a release: path in the package -> text."""
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress((DATA / name).read_bytes()))) as archive:
        return {
            member.name.partition("/")[2]: archive.extractfile(member).read().decode() for member in archive
        }


@pytest.fixture(scope="module")
def tomorrow(make_wheel):
    """A release after the newest: an option renamed, one gone, one new, another default."""
    files = source()
    path = "vllm/engine/arg_utils.py"
    text = files[path]
    gone = "vllm_group.add_argument('--performance-mode', **vllm_kwargs['performance_mode'])"
    default = "'--shutdown-timeout', type=int, default="
    later = "parser.add_argument('--disable-log-stats'"
    new_one = "parser.add_argument('--warp-drive', choices=['on', 'off'])"
    for old, new in (
        ("'--stream-interval'", "'--stream-intervals'"),
        (gone, "pass"),
        (default + "0", default + "30"),
        (later, f"{new_one}\n        {later}"),
    ):
        assert old in text, old
        text = text.replace(old, new)
    files[path] = text
    files["vllm/big.bin"] = "0" * 3_000_000
    return make_wheel(files, ("torch==2.15.0", "nvidia-cutlass-dsl[cu13]==5.0"))


#: What every release of vLLM has, with one option.
SMALL = {
    "vllm/entrypoints/cli/serve.py": "from vllm.args import make_arg_parser\n",
    "vllm/args.py": "def make_arg_parser(p):\n    p.add_argument('--port', type=int, default=8000)\n",
    "vllm/v1/attention/backends/registry.py": "import enum\n"
    "class AttentionBackendEnum(enum.Enum):\n    A = 'a'\n",
    "vllm/config/speculative.py": "from typing import Literal\nSpeculativeMethod = Literal['mtp']\n",
    "vllm/tool_parsers/__init__.py": "_TOOL_PARSERS_TO_REGISTER = {'hermes': 1}\n",
    "vllm/reasoning/__init__.py": "_REASONING_PARSERS_TO_REGISTER = {'qwen3': 1}\n",
    "vllm/model_executor/layers/quantization/__init__.py": "from typing import Literal\n"
    "QuantizationMethods = Literal['awq']\n",
    "vllm/envs.py": "environment_variables = {'VLLM_PORT': None, 'HOME': None}\n",
    **{
        f"{path}/__init__.py": ""
        for path in ("vllm", "vllm/entrypoints", "vllm/entrypoints/cli", "vllm/config")
    },
    "vllm/big.bin": "".join(map(chr, range(32, 127))) * 20_000,
}


@pytest.fixture
def published(index, make_wheel):
    index.files = {
        "vllm-0.33.0.tar.gz": b"not read",
        "vllm-0.34.0-cp38-abi3-manylinux_2_28_aarch64.whl": b"not read",
        WHEEL: make_wheel(SMALL),
        "vllm-0.34.0rc1.tar.gz": b"not read",
    }
    return index


def run(capsys, engine="vllm", release="0.34.0", **options):
    releases.add(engine, release, as_json=True, **options)
    return json.loads(capsys.readouterr().out)


def test_tomorrows_release_is_one_command_away(published, tomorrow, data, capsys):
    published.files[WHEEL] = tomorrow
    told = run(capsys)
    assert told["changed"]
    assert told["written"]
    assert told["before"] == "0.33.0"
    changes = {(one["name"], one["kind"]): (one["before"], one["after"]) for one in told["changes"]}
    assert changes[("stream-interval", "renamed")] == ("stream-interval", "stream-intervals")
    assert ("performance-mode", "removed") in changes
    assert changes[("shutdown-timeout", "default")] == (0, 30)
    assert changes[("warp-drive", "added")][1] == {"choices": ["on", "off"]}
    assert len(changes) == 4
    assert (told["cuda"], told["minimum_driver"], told["torch"]) == ("13.0", 580, "2.15.0")
    table = OptionTable(json.loads((data / "vllm.json").read_text()))
    assert table.releases[-1] == "0.34.0"
    assert table.option("warp-drive", "0.34.0").choices == ("on", "off")
    assert table.option("warp-drive", "0.33.0") is None


def test_only_parts_of_the_wheel_are_fetched(published, data, capsys):
    run(capsys)
    parts = [asked for path, asked in published.requests if path.startswith("/files/")]
    assert all(parts)
    assert len(parts) == len(set(parts))
    assert {path for path, _ in published.requests} == {
        "/simple/vllm/", f"/files/{WHEEL}",
    }  # fmt: skip


def test_a_file_that_lies_across_many_parts_is_read_whole(published, data, capsys, monkeypatch):
    monkeypatch.setattr(transport, "BLOCK", 100)
    assert run(capsys)["options"] == 2
    assert len(published.requests) > 20


@pytest.mark.parametrize("html", [True, False])
def test_a_server_may_write_the_names_of_its_headers_in_small_letters(published, data, capsys, html):
    published.small_letters, published.html = True, html
    assert run(capsys)["written"]
    assert all(asked for path, asked in published.requests if path.startswith("/files/"))


def test_a_second_run_changes_nothing(published, data, capsys):
    run(capsys)
    first = (data / "vllm.json").stat().st_mtime_ns, (data / "vllm.json").read_bytes()
    told = run(capsys)
    assert not told["changed"]
    assert not told["written"]
    assert ((data / "vllm.json").stat().st_mtime_ns, (data / "vllm.json").read_bytes()) == first


def test_check_writes_nothing(published, data, capsys):
    before = (data / "vllm.json").read_bytes()
    told = run(capsys, check=True)
    assert told["changed"]
    assert not told["written"]
    assert (data / "vllm.json").read_bytes() == before


def test_an_index_in_html_and_a_server_without_parts_do_too(published, data, capsys):
    published.html, published.ranges = True, False
    assert run(capsys)["written"]


def test_a_name_and_password_in_the_indexs_address_go_into_the_header(published, data, capsys, monkeypatch):
    published.login = "Basic " + base64.b64encode(b"me:pass word").decode()
    monkeypatch.setenv("PIP_INDEX_URL", published.url.replace("127.", "me:pass%20word@127."))
    assert run(capsys)["written"]


def test_the_table_is_aligned_and_fits(published, data, capsys):
    releases.add("vllm", "0.34.0")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "vllm 0.34.0: 2 options; it was added to vllm.json"
    assert max(len(line.rstrip()) for line in lines) <= 100
    place = next(line for line in lines if line.startswith("option ")).index("change")
    rows = [line for line in lines if line[place:].startswith("removed")]
    assert len(rows) > 250
    assert any(line.startswith("tool parsers removed: ") for line in lines)


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("0.35.0", "vllm has published no release 0.35.0"),
        ("0.3.40", "--release 0.34.0"),
        ("", "--release is missing"),
        ("latest", "is no release"),
        ("../../etc", "is no release"),
        ("0.34.0\n0.1", "is no release"),
    ],
)
def test_an_unknown_release_is_refused_with_the_nearest(published, data, release, said):
    before = (data / "vllm.json").read_bytes()
    with pytest.raises(UserError) as caught:
        releases.add("vllm", release)
    assert said in str(caught.value)
    assert caught.value.status == 2
    assert (data / "vllm.json").read_bytes() == before


def broken_wheels(whole, wheel):
    """What is wrong -> a package, and what is said."""
    unreadable = {**SMALL, "vllm/args.py": SMALL["vllm/args.py"].replace("=int", "=made_up()")}
    return {
        "cut off": (whole[: len(whole) // 2], "is no package that can be read"),
        "no zip": (b"<html>", "is no package that can be read"),
        "another package": (wheel({"x/y.py": ""}), "cannot be told from its source"),
        "a type that is not known": (wheel(unreadable), "--port: its type is not known"),
    }


@pytest.mark.parametrize("kind", ["cut off", "no zip", "another package", "a type that is not known"])
def test_a_package_that_cannot_be_read_leaves_the_catalog_as_it_was(
    published, data, tomorrow, make_wheel, kind
):
    published.files[WHEEL], said = broken_wheels(published.files[WHEEL], make_wheel)[kind]
    before = (data / "vllm.json").read_bytes()
    with pytest.raises(UserError) as caught:
        releases.add("vllm", "0.34.0")
    assert said in str(caught.value)
    assert (data / "vllm.json").read_bytes() == before
    assert sorted(path.name for path in data.iterdir()) == ["sglang.json", "vllm.json"]


@pytest.mark.parametrize("status", [401, 404, 503])
def test_an_index_that_refuses_is_told(published, data, status):
    published.status = status
    with pytest.raises(UserError, match=f"HTTP {status}"):
        releases.add("vllm", "0.34.0")


def test_an_index_that_is_down_is_told_with_the_ways_out(data, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    with pytest.raises(UserError) as caught:
        releases.add("vllm", "0.34.0")
    assert "did not answer" in str(caught.value)
    assert "--package FILE" in str(caught.value)


def test_pips_own_settings_name_the_index(monkeypatch, tmp_path):
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    config = tmp_path / "pip.conf"
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    config.write_text("[global]\nindex-url = https://index.example/simple\n")
    assert transport.index_url() == "https://index.example/simple/"
    config.write_text("")
    assert transport.index_url() == "https://pypi.org/simple/"
    monkeypatch.setenv("PIP_INDEX_URL", "file:///srv/index")
    with pytest.raises(UserError, match="not reached over HTTP"):
        transport.index_url()


def test_a_package_on_this_machine_needs_no_index(data, capsys):
    told = run(capsys, release="0.33.0", package=str(DATA / "vllm-0.33.0.tar.gz"))
    assert not told["changed"]
    assert told["options"] == 321
    told = run(capsys, engine="sglang", release="v0.5.23", package=str(DATA / "sglang-0.5.23.tar.gz"))
    assert not told["changed"]
    assert told["options"] == 532


def test_a_package_of_another_release_is_refused(data):
    with pytest.raises(UserError, match=r"is release 0\.33\.0"):
        releases.add("vllm", "0.34.0", package=str(DATA / "vllm-0.33.0.tar.gz"))
    with pytest.raises(UserError, match="cannot be read"):
        releases.add("vllm", "0.34.0", package="/nowhere/x.whl")


def test_cuda_that_the_tags_do_not_expect_is_unknown():
    told = releases.image("vllm", "0.40.0", {"torch": "3.0", "cuda": "14"})
    assert told["cuda"] is None
    assert told["minimum_driver"] is None
    assert "CUDA 14" in told["cuda_from"]
    assert releases.image("vllm", "0.40.0", {})["cuda_from"] == "by the tags of the releases before it"
