"""What hosts take over from the machine."""

from boxwright.lab import surroundings

PROXIES = {"HTTP_PROXY": "http://proxy.example:3128", "https_proxy": "http://u:p%40@proxy.example:3128"}


def test_proxies_are_known_in_both_spellings():
    found = surroundings.proxy_environment(PROXIES | {"PATH": "/bin"})
    assert found == {
        "http_proxy": PROXIES["HTTP_PROXY"],
        "HTTP_PROXY": PROXIES["HTTP_PROXY"],
        "https_proxy": PROXIES["https_proxy"],
        "HTTPS_PROXY": PROXIES["https_proxy"],
    }


def test_a_machine_without_proxies_leaves_no_file():
    assert surroundings.proxy_files({}, "localhost") == []


def test_the_lab_itself_is_reached_directly():
    found = surroundings.proxy_environment(PROXIES | {"no_proxy": "intern.example, localhost"})
    files = {
        file.path: file.content.decode()
        for file in surroundings.proxy_files(found, "localhost,172.28.0.0/24")
    }
    expected = "intern.example,localhost,172.28.0.0/24"
    assert f'no_proxy="{expected}"' in files["/etc/environment"].splitlines()
    assert f'NO_PROXY="{expected}"' in files["/etc/environment"].splitlines()
    service = files["/etc/systemd/system.conf.d/lab-proxy.conf"]
    # A percent sign would be a specifier to systemd.
    assert 'DefaultEnvironment="https_proxy=http://u:p%%40@proxy.example:3128"' in service.splitlines()
    assert "https_proxy" in files["/etc/sudoers.d/lab-proxy"]


def test_a_proxy_on_loopback_is_noticed():
    environment = surroundings.proxy_environment(
        {
            "http_proxy": "http://127.0.0.1:3128",
            "https_proxy": "http://u@localhost:1",
            "no_proxy": "//127.0.0.1",
        }
    )
    assert surroundings.loopback_proxies(environment) == ["http_proxy", "https_proxy"]
    assert surroundings.loopback_proxies(surroundings.proxy_environment(PROXIES)) == []


def test_certificates_keep_their_place(tmp_path):
    (tmp_path / "corp").mkdir()
    (tmp_path / "corp" / "root.crt").write_text("PEM", encoding="ascii")
    (tmp_path / "note.txt").write_text("no", encoding="ascii")
    found = surroundings.certificates(tmp_path)
    assert [file.path for file in found] == ["/usr/local/share/ca-certificates/corp/root.crt"]
    assert surroundings.certificates(tmp_path / "none") == []
