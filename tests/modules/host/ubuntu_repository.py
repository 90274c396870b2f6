"""Package sources like those of Ubuntu 22.04 and 24.04 and of the driver's vendor for them: empty packages.

Names, versions and what needs what are those of
- https://packages.ubuntu.com/source/noble-updates/nvidia-graphics-drivers-580, and the pages of its packages
  (nvidia-headless-no-dkms-580-open, nvidia-dkms-580-open, libnvidia-compute-580, nvidia-utils-580);
- https://packages.ubuntu.com/noble-updates/linux-modules-nvidia-580-open-generic and what it depends on;
- the listing of https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/ as of 2026-05-25
  (580.65.06-0ubuntu1 to 580.159.04-1ubuntu1, 595.45.04-1ubuntu1 to 595.71.05-1ubuntu1), and the packages of
  its CUDA 13.2 (595: names without the branch, no nvidia-utils and no nvidia-compute-utils).
"""

from boxwright.lab.gpu import deb

KERNELS = {"22.04": "5.15.0-91", "24.04": "6.8.0-85"}
#: Of Ubuntu's own, the release's last part stands for the release.
OWN = ("580.95.05-0ubuntu0.{release}.2", "580.126.09-0ubuntu0.{release}.1")
VENDOR = {
    "570": ("570.172.08-0ubuntu1", "570.195.03-0ubuntu1"),
    "580": ("580.95.05-0ubuntu1", "580.105.08-0ubuntu1", "580.159.04-1ubuntu1"),
    "595": ("595.45.04-1ubuntu1", "595.71.05-1ubuntu1"),
}


def make(place):
    """Build the sources in the directory `place`: ubuntu-22.04, ubuntu-24.04, cuda."""
    for release, kernel in KERNELS.items():
        own = [one for version in OWN for one in driver(version.format(release=release), "580")]
        write(place / f"ubuntu-{release}", [*own, *kernels(release, kernel)], "Ubuntu")
    found = [
        one
        for branch, versions in VENDOR.items()
        for version in versions
        for one in driver(version, branch, suffix=f"-{branch}" if branch < "590" else "")
    ]
    toolkit = [
        package("cuda-toolkit-12-8", "12.8.1-1", "cuda-nvcc-12-8"),
        package("cuda-nvcc-12-8", "12.8.93-1"),
    ]
    write(place / "cuda", [*found, *toolkit], "NVIDIA")


def package(name, version, *depends, provides=""):
    """provides: a name that only one package may have."""
    control = {"Depends": ", ".join(depends)} if depends else {}
    if provides:
        control.update({"Provides": provides, "Conflicts": provides, "Replaces": provides})
    return deb.Package(name, version, "Empty.", control=control)


def driver(version, branch, suffix=None):
    """The driver's packages of one version. suffix: of their names."""
    end = f"-{branch}" if suffix is None else suffix
    upstream, exact = version.partition("-")[0], f"(= {version})"
    common, library = f"nvidia-kernel-common{end}", f"libnvidia-compute{end}"
    found = [
        package(library, version, provides="libnvidia-compute" if end else ""),
        package(f"libnvidia-cfg1{end}", version, provides="libnvidia-cfg1" if end else ""),
        package(
            f"libnvidia-decode{end}",
            version,
            f"{library} {exact}",
            provides="libnvidia-decode" if end else "",
        ),
        package(common, version, provides="nvidia-kernel-common" if end else ""),
    ]
    for flavor in ("", "-open"):
        source, dkms = f"nvidia-kernel-source{end}{flavor}", f"nvidia-dkms{end}{flavor}"
        bare = f"nvidia-headless-no-dkms{end}{flavor}"
        parts = [library, f"libnvidia-cfg1{end}", f"libnvidia-decode{end}", common, source]
        parts += [f"nvidia-compute-utils{end}"] if end else []
        built = [f"{one} (>= {upstream})" for one in (common, source)]
        found += [
            package(source, version, provides="nvidia-kernel-source" if end else ""),
            package(dkms, version, "dkms", *built, provides="nvidia-dkms-kernel"),
            package(bare, version, *(f"{one} {exact}" for one in parts)),
            # On its page what this one needs has no version.
            package(f"nvidia-headless{end}{flavor}", version, dkms, bare),
        ]
    if end:
        found += [
            package(f"nvidia-compute-utils{end}", version, library, provides="nvidia-compute-utils"),
            package(f"nvidia-utils{end}", version, library, provides="nvidia-utils"),
        ]
    else:
        found += [package("nvidia-persistenced", version), package("nvidia-modprobe", version)]
    return found


def kernels(release, kernel):
    """Headers, dkms, and the modules that Ubuntu has built and signed for its kernel."""
    abi = kernel.replace("-", ".")
    modules, newest = f"linux-modules-nvidia-580-open-{kernel}-generic", OWN[-1].partition("-")[0]
    common = f"nvidia-kernel-common-580 (>= {newest})"
    return [
        package("dkms", "3.0.11-1ubuntu13"),
        package(f"linux-headers-{kernel}-generic", f"{abi}-generic"),
        package("linux-headers-generic", abi, f"linux-headers-{kernel}-generic"),
        package(f"linux-signatures-nvidia-{kernel}-generic", f"{kernel}.85"),
        package(
            f"linux-objects-nvidia-580-open-{kernel}-generic",
            f"{kernel}.85",
            f"linux-signatures-nvidia-{kernel}-generic",
        ),
        package(modules, f"{kernel}.85", f"linux-objects-nvidia-580-open-{kernel}-generic", common),
        package(
            "linux-modules-nvidia-580-open-generic", f"{kernel}.85", f"{modules} (= {kernel}.85)", common
        ),
    ]


def write(place, packages, origin):
    """A flat source of one origin, which apt's preferences go by."""
    place.mkdir(parents=True)
    debs = [(one, deb.build(one)) for one in packages]
    for one, content in debs:
        (place / one.filename).write_bytes(content)
    index = deb.packages_index(debs)
    (place / "Packages").write_bytes(index)
    (place / "Release").write_bytes(
        deb.release_file({"Packages": index}, origin, origin, Architectures="amd64")
    )
