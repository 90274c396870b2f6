"""The verb chat: over a real HTTP server behind a stand-in for ssh."""

import base64
import http.server
import io
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from boxwright.cli import chatting, keys, ssh_forward
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.cli.endpoint import Answer, Endpoint, _pieces, _reason
from boxwright.errors import UserError

KEY = "k3y-of-the-box-0123456789"
FAKE = Path(__file__).parent / "fake_ssh.py"
#: The third is off.
BOXES = ("box1", "box2", "box3")
OFF = {"kind": "unreachable", "message": "ssh: connect to host 192.0.2.1 port 22: No route to host"}


def event(reasoning="", text="", finish=None, **more):
    delta = {**({"reasoning": reasoning} if reasoning else {}), **({"content": text} if text else {})}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


USAGE = {"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 12,
                                  "prompt_tokens_details": {"cached_tokens": 16}}}  # fmt: skip
STREAM = [
    event(),
    event("let me "),
    event("think"),
    event(text="It is "),
    event(text="Paris.", finish="stop"),
    USAGE,
]


@pytest.fixture
def engine():
    """A server that answers as vLLM does; `asked` are the bodies, `stream` what it sends, `status` how."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer({"data": [{"id": "qwen"}]})

        def do_POST(self):
            server = self.server
            server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if server.status != 200:
                self.answer(
                    {"error": {"message": "the context is too long", "code": server.status}}, server.status
                )
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            try:
                for one in server.stream:
                    self.wfile.write(f"data: {json.dumps(one)}\n\n".encode())
                    self.wfile.flush()
                    time.sleep(server.pause)
                self.wfile.write(b"data: [DONE]\n\n")
            except OSError:
                server.left.set()

        def answer(self, value, status=200):
            if self.headers["Authorization"] != f"Bearer {KEY}":
                status, value = 401, {"error": "Unauthorized"}
            text = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.stream, server.status, server.pause = [], STREAM, 200, 0.0
    server.left = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def words(engine):
    """The words of an ssh that leads to the server."""
    return [sys.executable, str(FAKE), f"PORT={engine.server_port}", "box1"]


@pytest.fixture
def talk(words, engine):
    # ssh's own options come behind its first word, which is Python here.
    with forward(words) as path:
        yield chatting.Talk(Endpoint("box1", path, KEY), "qwen")


def forward(words, **options):
    class Ssh(list):
        """So that ssh's options land behind the stand-in's own arguments."""

    return ssh_forward.forwarded("box1", Ssh([str(program(words)), "box1"]), "127.0.0.1", 8000, **options)


def program(words):
    """A program of one word, as ssh is."""
    import tempfile

    path = Path(tempfile.mkdtemp()) / "ssh"
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words[:3])} "$@"\n')
    path.chmod(0o700)
    return path


def test_an_answer_with_its_reasoning_apart_and_its_figures(talk, engine, capsys):
    answer = talk.ask("What is the capital of France?")
    said = capsys.readouterr()
    assert said.out == "It is Paris.\n"
    assert "let me think" in said.err
    assert "12 tokens" in said.err
    assert "asked with 30, 16 of them cached" in said.err
    assert (answer.reasoning, answer.finish, answer.tokens) == ("let me think", "stop", 12)
    assert engine.asked[0]["messages"] == [{"role": "user", "content": "What is the capital of France?"}]
    assert engine.asked[0]["stream_options"] == {"include_usage": True}


def test_on_a_terminal_the_reasoning_is_dim_above_the_answer(talk, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.delenv("NO_COLOR", raising=False)
    talk.ask("?")
    text = screen.getvalue()
    assert text.startswith("\033[2mlet me \033[22m\033[2mthink\033[22m\n\nIt is Paris.\n\033[2m[12 tokens; ")


def test_a_conversation_remembers_and_begins_anew(talk, engine, capsys):
    lines = iter(["one", "", "two", "/system be brief", "three", "/system", "/reset", "four", "/what"])

    def ask(_):
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    chatting.converse(talk, ask)
    roles = [[one["role"] for one in body["messages"]] for body in engine.asked]
    assert roles == [["user"], ["user", "assistant", "user"], ["system", "user"], ["system", "user"]]
    assert engine.asked[1]["messages"][1]["content"] == "It is Paris."
    out = capsys.readouterr().out
    assert "be brief" in out
    assert out.count("/reset begins anew") == 2


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts, also where the tests run in the background: a shell's job there ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_stops_the_answer_and_not_the_conversation(talk, engine, monkeypatch):
    engine.stream, engine.pause = [event(text="word ")] * 500, 0.01
    pieces = []

    def piece(self, text, *, reasoning):
        pieces.append(text)
        if len(pieces) == 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)

    monkeypatch.setattr(chatting.Shown, "piece", piece)
    answer = talk.ask("?")
    assert answer.stopped
    assert engine.left.wait(10)
    assert talk.said[-1] == {"role": "assistant", "content": answer.text}
    engine.stream, engine.pause = STREAM, 0
    monkeypatch.undo()
    assert talk.ask("again").text == "It is Paris."


def test_what_the_engine_refuses_ends_no_conversation(talk, engine, capsys):
    engine.status = 400
    lines = iter(["too long"])

    def ask(_):
        engine_lines = next(lines, None)
        if engine_lines is None:
            raise EOFError
        return engine_lines

    chatting.converse(talk, ask)
    assert "box1: the endpoint refused (HTTP 400)\n  the context is too long" in capsys.readouterr().err
    assert talk.said == []


def test_an_error_within_a_stream_is_told(talk, engine):
    engine.stream = [event(text="It"), {"error": {"message": "EngineCore died"}}]
    with pytest.raises(UserError, match="EngineCore died"):
        talk.ask("?", quiet=True)


def test_no_answer_can_draw_on_the_terminal(talk, engine, capsys):
    engine.stream = [event("\033[2J"), event(text="a\tb\n\033]0;title\007", finish="stop")]
    talk.ask("?")
    said = capsys.readouterr()
    assert "\033" not in said.out + said.err
    assert said.out.startswith("a\tb\n\\x1b]0;title\\x07")


def test_hostile_events_are_no_trouble(talk, engine):
    engine.stream = [{"choices": 3}, {"choices": [3, {"delta": []}, {"delta": {"content": 7}}]},
                     {"usage": {"completion_tokens": "many"}}, [], event(text="ok")]  # fmt: skip
    answer = talk.ask("?", quiet=True)
    assert (answer.text, answer.tokens, answer.tokens_per_s) == ("ok", None, None)


def test_a_wrong_key_is_told(words):
    with forward(words) as path, pytest.raises(UserError, match="HTTP 401"):
        Endpoint("box1", path, "another").model()
    assert KEY not in repr(Endpoint("box1", path, KEY))


def test_the_socket_is_for_this_user_and_goes_with_the_way(words):
    with forward(words) as path:
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert path.exists()
    assert not path.parent.exists()


def test_ssh_ends_with_the_process_that_began_it_even_if_that_is_killed(words):
    code = (
        "import sys, time; from pathlib import Path; from boxwright.cli import ssh_forward\n"
        f"with ssh_forward.forwarded('box1', [{str(program(words))!r}, 'box1'], '127.0.0.1', 8000) as path:\n"
        "    print(path, flush=True); time.sleep(60)\n"
    )
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root) as one:
        path = one.stdout.readline().strip()
        assert path in processes()
        one.kill()
    deadline = time.monotonic() + 10
    while path in processes() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert path not in processes()


def processes():
    return subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout


def test_an_ssh_that_ends_says_why(monkeypatch):
    words = [sys.executable, str(FAKE), "ends"]
    with pytest.raises(UserError, match="Permission denied") as raised, forward(words):
        pass
    assert raised.value.where == "box1"
    monkeypatch.setattr(ssh_forward, "PATIENCE_S", 0.5)
    with pytest.raises(UserError, match="did not listen"), forward([sys.executable, str(FAKE), "hangs"]):
        pass


def test_an_engine_that_does_not_listen_is_told(words, engine):
    engine.shutdown()
    engine.server_close()
    with forward(words) as path, pytest.raises(UserError, match="does not answer") as raised:
        Endpoint("box1", path, KEY).model()
    assert "./invoke doctor --host box1" in raised.value.ways_out


def test_an_engine_without_a_chat_says_what_it_is_for(talk, engine):
    engine.status = 404
    with pytest.raises(UserError) as raised:
        talk.ask("hello", quiet=True)
    assert "no talking with it" in raised.value.what
    assert "/v1/embeddings" in raised.value.why
    assert raised.value.ways_out == ("./invoke verify --host box1 lets it answer",)


def test_figures():
    answer = Answer(tokens=101, first_s=0.5, seconds=1.5, prompt_tokens=2000, finish="length")
    assert chatting.figures(answer) == (
        "[101 tokens; 100.0 tokens/s; the first after 0.50 s; asked with 2,000; cut off at its longest]"
    )
    assert chatting.figures(Answer()) == "[no answer]"


@pytest.fixture
def verb(monkeypatch, tmp_path, words, capsys):
    """The whole verb on a declared box, with this on standard input."""
    declared = {
        "ansible_host": "192.0.2.1",
        "box_gpus": {"model": "rtx4090", "count": 1},
        "box_deployments": [
            {
                "name": "qwen",
                "model": "qwen3-8b",
                "image": "vllm/vllm-openai:v0.29.0",
                "context": 4096,
                "port": 8000,
            }
        ],
    }
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": dict.fromkeys(BOXES, declared)}}))
    ssh, seen = program(words), []

    def play(_, names, *__, variables, **___):
        seen.append(variables)
        content = base64.b64encode(KEY.encode() + b"\n").decode()
        found = {name: HostReport(name, results={"slurp": [{"content": content}]}) for name in names}
        off = {name: HostReport(name, failure=OFF) for name in found if name == "box3"}
        return RunReport(0, 1.0, {**found, **off})

    monkeypatch.setattr(keys, "play", play)
    monkeypatch.setattr(chatting, "ssh_words", lambda host, _: [str(ssh), host])

    def call(*hosts, stdin="", **options):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        chatting.chat(list(hosts), [str(tmp_path)], **options)
        return capsys.readouterr(), seen

    return call


def test_asked_once_from_a_pipe(verb):
    said, seen = verb("box1", stdin="capital of France?\n")
    assert said.out == "It is Paris.\n"
    assert seen == [{"key_paths": {"box1": "/etc/boxwright/engines/qwen/api-key"}}]
    assert KEY not in said.out + said.err


def test_json_for_programs(verb, engine):
    said, _ = verb("box1", prompt="capital?", system="brief", most="64", as_json=True)
    found = json.loads(said.out)
    assert (found["host"], found["deployment"], found["model"]) == ("box1", "qwen", "qwen")
    assert (found["text"], found["reasoning"], found["tokens"]) == ("It is Paris.", "let me think", 12)
    assert said.err == ""
    assert engine.asked[0]["max_tokens"] == 64
    assert engine.asked[0]["messages"][0] == {"role": "system", "content": "brief"}


def test_several_boxes_are_asked_at_once_and_one_that_is_off_holds_up_none(verb, engine, capsys):
    with pytest.raises(SystemExit) as ended:
        verb(every=True, prompt="capital?")
    said = capsys.readouterr()
    assert ended.value.code == 1
    assert said.out == "box1:\nIt is Paris.\nbox2:\nIt is Paris.\n"
    assert "box3: could not be asked: the box does not answer" in said.err
    assert said.err.count("let me think") == 2
    assert len(engine.asked) == 2
    with pytest.raises(SystemExit):
        verb(every=True, prompt="capital?", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert set(found) == set(BOXES)
    assert [found[name]["failure"] for name in BOXES[:2]] == [None, None]
    assert found["box2"]["text"] == "It is Paris."
    assert "No route to host" in found["box3"]["failure"]


def test_all_that_answer_are_a_success(verb, capsys):
    said, _ = verb("box1", "box2", prompt="capital?")
    assert said.out.count("It is Paris.") == 2


def test_one_alone_that_is_off_is_an_error_with_its_ways_out(verb):
    with pytest.raises(UserError, match="No route to host"):
        verb("box3", prompt="capital?")


def test_nobody_talks_with_several_boxes_at_once(verb, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(UserError, match="a conversation is with one box, and these are 2") as raised:
        verb("box1", "box2", stdin=None)
    assert raised.value.status == 2
    assert "--prompt TEXT" in raised.value.ways_out


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_stops_the_answers_of_all(verb, engine):
    engine.stream, engine.pause = [event(text="word ")] * 5000, 0.01
    began = time.monotonic()
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        verb("box1", "box2", prompt="?")
    assert time.monotonic() - began < 20


def test_what_is_asked_wrongly(verb):
    for match, hosts, options in (
        ("nothing to ask", ["box1"], {}),
        ("no deployment is named", ["box1"], {"prompt": "x", "deployment": "other"}),
        ("--max-tokens", ["box1"], {"prompt": "x", "most": "many"}),
    ):
        with pytest.raises(UserError, match=match) as raised:
            verb(*hosts, **options)
        assert raised.value.status == 2


def test_an_engine_that_counts_nonsense_is_no_fault_of_ours():
    usage = {
        "prompt_tokens": -3,
        "completion_tokens": 10**400,
        "prompt_tokens_details": {"cached_tokens": 1e9},
    }
    answer = Answer(first_s=0.1, seconds=2.0)
    assert list(_pieces({"choices": [], "usage": usage}, answer)) == []
    assert (answer.tokens, answer.prompt_tokens, answer.cached_tokens) == (None, None, None)
    assert chatting.figures(answer) == "[the first after 0.10 s]"


def test_an_error_without_end_is_told_as_it_stands():
    assert _reason(b"[" * 200_000).startswith("[[[")


def test_what_is_no_utf_8_is_asked_with_a_mark(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9?"), encoding="utf-8"))
    assert chatting.piped() == "caf\ufffd?"
    assert chatting.readable("caf\udce9?") == "caf\ufffd?"


def test_a_question_that_would_be_cut_is_refused(monkeypatch):
    monkeypatch.setattr(chatting, "LONGEST", 10)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * 11), encoding="utf-8"))
    with pytest.raises(UserError, match="longer than 10"):
        chatting.piped()
