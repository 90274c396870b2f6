"""A package repository like the driver vendor's for RHEL 9, of empty packages: streams by branch, flavor.

Needs rpmbuild, createrepo_c and modifyrepo_c (Debian: rpm, createrepo-c).
"""

import subprocess

VERSIONS = ("570.195.03", "580.95.05", "580.105.08", "595.71.05")
KMODS = {"open": "kmod-nvidia-open-dkms", "dkms": "kmod-nvidia-latest-dkms"}
#: The driver's packages and what each needs in its own version.
DRIVER = {
    "nvidia-driver-cuda": ("nvidia-driver-cuda-libs", "nvidia-kmod-common", "nvidia-persistenced"),
    "nvidia-driver-cuda-libs": ("libnvidia-ml",),
    "libnvidia-ml": (),
    "nvidia-kmod-common": ("nvidia-kmod",),
    "nvidia-persistenced": (),
}
#: Stream -> versions and flavor.
STREAMS = {
    "570-open": (VERSIONS[:1], "open"),
    "580-open": (VERSIONS[1:3], "open"),
    "580-dkms": (VERSIONS[1:3], "dkms"),
    "595-open": (VERSIONS[3:], "open"),
    "open-dkms": (VERSIONS, "open"),
    "latest-dkms": (VERSIONS, "dkms"),
}
OTHERS = (
    ("dkms", "3.2.1", "1.el9", ()),
    ("python3-dnf-plugin-versionlock", "4.3.0", "21.el9", ()),
    *(
        (
            "kernel-devel-matched",
            "5.14.0",
            release,
            (f"Requires: kernel-devel = 5.14.0-{release}", f"Requires: kernel-core = 5.14.0-{release}"),
        )
        for release in ("503.1.1.el9_5", "570.12.1.el9_6")
    ),
    ("kernel-core", "5.14.0", "503.1.1.el9_5", ("Provides: installonlypkg(kernel)",)),
    ("kernel-devel", "5.14.0", "503.1.1.el9_5", ("Provides: installonlypkg(kernel)",)),
    ("kernel-devel", "5.14.0", "570.12.1.el9_6", ("Provides: installonlypkg(kernel)",)),
    ("cuda-toolkit-12-8", "12.8.1", "1", ("Requires: cuda-nvcc-12-8",)),
    ("cuda-nvcc-12-8", "12.8.93", "1", ()),
    ("nvidia-driver-old", "550.54", "1.el9", ("Conflicts: nvidia-driver-cuda",)),
)
KERNEL = "5.14.0-570.12.1.el9_6"
#: Further sources that people add, and what a server has: name, epoch, version, release, tags.
#: https://github.com/rpmfusion/xorg-x11-drv-nvidia, https://github.com/docker/containerd-packaging,
#: https://gitlab.com/redhat/centos-stream/rpms/podman and their like say what needs and excludes what.
BESIDE = (
    ("xorg-x11-drv-nvidia-cuda", 3, "570.169", "1.el9", ("Requires: nvidia-kmod >= 3:570.169",)),
    ("akmod-nvidia", 3, "570.169", "1.el9", ("Provides: nvidia-kmod = 3:570.169",)),
    (f"kmod-nvidia-{KERNEL}.x86_64", 3, "570.169", "1.el9", ("Provides: nvidia-kmod = 3:570.169",)),
    ("nvidia-x11-drv", None, "570.169", "1.el9_6.elrepo", ("Requires: kmod-nvidia = 570.169",)),
    ("kmod-nvidia", None, "570.169", "1.el9_6.elrepo", ()),
    ("container-selinux", 4, "2.235.0", "1.el9", ()),
    ("runc", 4, "1.2.5", "2.el9", ("Provides: oci-runtime",)),
    ("crun", None, "1.21", "1.el9", ("Provides: oci-runtime",)),
    ("podman", 6, "5.4.0", "10.el9_6", ("Requires: oci-runtime",)),
    (
        "podman-docker",
        6,
        "5.4.0",
        "10.el9_6",
        ("Requires: podman", "Conflicts: docker-ce", "Conflicts: docker-ce-cli"),
    ),
    (
        "containerd.io",
        None,
        "1.7.28",
        "1.el9",
        ("Provides: runc", "Obsoletes: runc", "Conflicts: runc", "Requires: container-selinux"),
    ),
    ("docker-ce-cli", 1, "28.5.1", "1.el9", ("Conflicts: docker",)),
    (
        "docker-ce",
        3,
        "28.5.1",
        "1.el9",
        ("Requires: docker-ce-cli", "Requires: containerd.io", "Requires: container-selinux"),
    ),
    ("nvidia-container-toolkit", None, "1.18.0", "1", ()),
    ("kernel-core", None, *KERNEL.split("-"), ("Provides: installonlypkg(kernel)",)),
)


def make(place):
    """Build the repository in the directory `place`."""
    for version in VERSIONS:
        for name, needs in DRIVER.items():
            _package(place, name, version, "1.el9", [f"Requires: {one} = 3:{version}" for one in needs], 3)
        for kmod, other in (KMODS.values(), reversed(KMODS.values())):
            tags = [
                f"Requires: nvidia-kmod-common = 3:{version}",
                "Requires: dkms",
                f"Provides: nvidia-kmod = 3:{version}",
                f"Conflicts: {other}",
            ]
            _package(place, kmod, version, "1.el9", tags, 3)
    for name, version, release, tags in OTHERS:
        _package(place, name, version, release, tags)
    for name, epoch, version, release, tags in BESIDE:
        _package(place, name, version, release, tags, epoch)
    (place / "modules.yaml").write_text("".join(map(_stream, STREAMS)) + _DEFAULT)
    subprocess.run(["createrepo_c", "-q", place], check=True)
    subprocess.run(
        ["modifyrepo_c", "--mdtype=modules", place / "modules.yaml", place / "repodata"],
        check=True,
        capture_output=True,
    )


def _package(place, name, version, release, tags, epoch=None):
    lines = [
        f"Name: {name}",
        f"Version: {version}",
        f"Release: {release}",
        *([f"Epoch: {epoch}"] if epoch else []),
        "Summary: empty",
        "License: none",
        "BuildArch: noarch",
        *tags,
        "%description",
        "empty",
        "%files",
    ]
    spec = place / "package.spec"
    spec.write_text("\n".join(lines) + "\n")
    defines = {
        "_topdir": place / "build",
        "_rpmdir": place,
        "_rpmfilename": "%%{NAME}-%%{VERSION}-%%{RELEASE}.rpm",
        "_binary_payload": "w1.gzdio",
    }
    options = [word for key, value in defines.items() for word in ("--define", f"{key} {value}")]
    subprocess.run(["rpmbuild", "-bb", "--quiet", *options, spec], check=True, capture_output=True)


def _stream(name):
    versions, flavor = STREAMS[name]
    rpms = "".join(
        f"      - {package}-3:{version}-1.el9.noarch\n"
        for version in versions
        for package in (*DRIVER, KMODS[flavor])
    )
    return (
        "---\ndocument: modulemd\nversion: 2\ndata:\n  name: nvidia-driver\n"
        f'  stream: "{name}"\n  version: 1\n  context: "{list(STREAMS).index(name):08d}"\n  arch: x86_64\n'
        "  summary: driver\n  description: driver\n  license: {module: [MIT]}\n"
        f"  profiles: {{default: {{rpms: [nvidia-driver-cuda, {KMODS[flavor]}]}}}}\n"
        f"  artifacts:\n    rpms:\n{rpms}...\n"
    )


_DEFAULT = (
    "---\ndocument: modulemd-defaults\nversion: 1\ndata:\n  module: nvidia-driver\n  stream: latest-dkms\n"
    "  profiles: {latest-dkms: [default]}\n...\n"
)
