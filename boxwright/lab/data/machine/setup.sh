#!/bin/sh
# Runs once inside the root directory of a new host image, after its packages are installed.
set -eu

useradd --create-home --shell /bin/bash ops
install -d -m 700 -o ops -g ops /home/ops/.ssh
echo 'ops ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/ops
chmod 440 /etc/sudoers.d/ops

# A path-exclude of dpkg would cost 15 s of filtering; removing afterwards costs nothing.
rm -rf /usr/share/man/* /usr/share/doc/* /usr/share/locale/*
# What must differ from host to host is made when the host is.
rm -f /etc/ssh/ssh_host_*
: > /etc/machine-id

# Timers that would start package runs of their own, and the loader that finds no kernel modules directory.
systemctl mask apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer systemd-modules-load.service
