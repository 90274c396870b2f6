"""The module run_history."""


def test_both_files_the_oldest_first(run_module, tmp_path):
    (tmp_path / "runs.jsonl").write_text("c\nd\n")
    (tmp_path / "runs.jsonl.1").write_text("a\nb\n")
    assert run_module("run_history", directory=str(tmp_path))["lines"] == ["a", "b", "c", "d"]
    assert run_module("run_history", directory=str(tmp_path), most=3)["lines"] == ["b", "c", "d"]


def test_a_box_on_which_nothing_ran(run_module, tmp_path):
    found = run_module("run_history", directory=str(tmp_path / "none"))
    assert (found["lines"], found["changed"]) == ([], False)


def test_a_stray_byte_is_no_trouble(run_module, tmp_path):
    (tmp_path / "runs.jsonl").write_bytes(b"\xff\xfe\n{}\n")
    assert run_module("run_history", directory=str(tmp_path))["lines"][-1] == "{}"


def test_what_cannot_be_read_is_named(run_module, tmp_path):
    (tmp_path / "runs.jsonl").mkdir()
    found = run_module("run_history", directory=str(tmp_path))
    assert found["failed"]
    assert "runs.jsonl" in found["msg"]
