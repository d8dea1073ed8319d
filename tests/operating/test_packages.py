# SPDX-License-Identifier: Apache-2.0
"""packaging/build: the packages are installed in a copy of this machine, serve after one command, and leave nothing."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness.fixtures import require_target
from harness.once import made_once
from harness.patience import PATIENCE_S
from harness.servers import REPO_ROOT

BUILD_TIMEOUT_S = 600

pytestmark = pytest.mark.long

# In namespaces of its own for mounts, processes and the network: an overlay over the machine's files, so that whatever is
# written lies in $FOLDER/upper and nowhere else.
ENTER = """
set -e
mount -t tmpfs none "$FOLDER"
mkdir "$FOLDER/upper" "$FOLDER/work" "$FOLDER/root" "$FOLDER/packages"
cp "$PACKAGES"/*.deb "$FOLDER/packages"
find "$LIBRARIES" -name 'libwc_*.so' -exec cp -t "$FOLDER/packages" {} +
mount -t overlay overlay -o "lowerdir=/,upperdir=$FOLDER/upper,workdir=$FOLDER/work" "$FOLDER/root"
mkdir -p "$FOLDER/root/packages"
mount --bind "$FOLDER/packages" "$FOLDER/root/packages"
mount -t proc proc "$FOLDER/root/proc"
mount --rbind /dev "$FOLDER/root/dev"
mount -t tmpfs none "$FOLDER/root/tmp"
mount -t tmpfs none "$FOLDER/root/run"
ip link set lo up
rm -f "$FOLDER/root/usr/bin/memcached" "$FOLDER/root/etc/alternatives/memcached"
rm -f "$FOLDER/root/var/lib/man-db/auto-update"  # dpkg makes no index of all pages
"""
IN_ROOT = 'chroot "$FOLDER/root" /bin/bash -euc "$INSIDE"\n'
# Files that are there afterwards, but for those of dpkg itself. c: what was removed from the copy.
LEFT = """
umount "$FOLDER/root/packages"
rmdir "$FOLDER/root/packages"
cd "$FOLDER/upper"
find . ! -type d ! -type c ! -path './var/lib/dpkg/*' ! -path './var/log/*' ! -path './var/cache/*' ! -path './etc/ld.so.cache' \
  -printf 'left: %p\\n'
"""
INSTALL = 'dpkg -i /packages/*.deb >/dev/null\nexport LD_LIBRARY_PATH=/packages\n'
REMOVE = 'unset LD_LIBRARY_PATH\ndpkg -P $(cd /packages && ls *.deb | sed "s/_.*//") >/dev/null 2>&1\n'


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    for tool in ("dpkg-deb", "dpkg-shlibdeps", "dpkg-architecture", "unshare", "strip"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing (Debian: dpkg-dev, binutils, util-linux)")
    programs = Path(os.environ.get("SIMT_WARPCACHED", require_target("warpcached").path)).parent
    if not (programs / "warpcached").exists():
        pytest.skip(f"no build in {programs}")

    def build(output: Path) -> None:
        done = subprocess.run(
            [REPO_ROOT / "packaging" / "build", "--programs", programs, "--output", output],
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
        )
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "packages", build)


@pytest.fixture
def inside(packages, tmp_path):
    """Runs commands as root in a copy of the machine; their output, and what is left when the copy ends."""
    if os.geteuid() != 0:
        pytest.skip("needs root for namespaces")

    def run(commands: str) -> str:
        folder = tmp_path / "copy"
        folder.mkdir(exist_ok=True)
        program = Path(os.environ.get("SIMT_WARPCACHED", require_target("warpcached").path))
        done = subprocess.run(
            ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "/bin/bash", "-c", ENTER + IN_ROOT + LEFT],
            env={
                "PATH": os.environ["PATH"],
                "DEBIAN_FRONTEND": "noninteractive",
                "FOLDER": str(folder),
                "PACKAGES": str(packages),
                "INSIDE": commands,
                # A build with the simulated GPU has a library of its own.
                "LIBRARIES": str(program.parent.resolve()),
            },
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
        )
        if "unshare failed" in done.stderr or "mount:" in done.stderr:
            pytest.skip(f"no namespaces here: {done.stderr.strip()}")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_the_server_serves_after_one_command_and_leaves_nothing(inside):
    text = inside(
        INSTALL
        + """
        warpcached -d -u nobody -P /run/pid -l 127.0.0.1 -o drop_privileges
        exec 3<>/dev/tcp/127.0.0.1/11211
        printf 'set key 0 0 5\\r\\nvalue\\r\\nget key\\r\\n' >&3
        for _ in 1 2 3 4; do read -r line <&3; echo "${line%$'\\r'}"; done
        warpcache-dump 127.0.0.1 | head -n 1
        warpcache-top 127.0.0.1 -b 1 -i 0.1 | grep -o 'hit ratio' || true
        memcached -V
        kill $(cat /run/pid); while [ -e /run/pid ]; do sleep 0.05; done
        test -f /etc/default/warpcached && echo settings
        man -l /usr/share/man/man1/warpcached.1.gz 2>/dev/null | grep -c -- '--memory-limit' || zgrep -c 'memory' /usr/share/man/man1/warpcached.1.gz
        """
        + REMOVE
    )
    for expected in ("STORED", "VALUE key 0 5", "value", "END", "warpcache-dump 1", "hit ratio", "memcached 1.6.45", "settings"):
        assert expected in text.splitlines(), text
    assert "left: " not in text


def test_a_plan_needs_the_tools_alone(inside):
    programs = Path(os.environ.get("SIMT_WARPCACHED", require_target("warpcached").path)).parent
    if not (programs / "hash-sim").exists():
        pytest.skip("hash-sim is not built")
    text = inside(
        INSTALL
        + """
        printf 'set a 10\\nget a\\nget b\\n' >/tmp/trace
        warpcached --plan=/tmp/trace -m 64 | grep -o 'gets hit'
        """
        + REMOVE
    )
    assert text.splitlines()[0] == "gets hit"
    assert "left: " not in text


def test_another_memcached_keeps_its_name(inside):
    text = inside(
        "printf '#!/bin/sh\\necho another\\n' >/usr/bin/memcached; chmod +x /usr/bin/memcached\n"
        + INSTALL
        + "memcached\n"
        + REMOVE
        + "memcached; rm /usr/bin/memcached\n"
    )
    assert text.splitlines()[:2] == ["another", "another"]
    assert "left: " not in text


def test_settings_of_the_operator_stay_until_a_purge(inside):
    text = inside(
        INSTALL
        + """
        echo MEMORY_MB=128 >>/etc/default/warpcached
        unset LD_LIBRARY_PATH
        dpkg -r $(cd /packages && ls | sed "s/_.*//") >/dev/null 2>&1
        tail -n 1 /etc/default/warpcached
        test ! -e /usr/bin/warpcached
        """
        + REMOVE
    )
    assert text.splitlines()[0] == "MEMORY_MB=128"
    assert "left: " not in text


def test_the_units_are_sound(inside):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze (Debian: systemd)")
    text = inside(
        INSTALL
        + """
        unset LD_LIBRARY_PATH
        systemd-analyze verify --man=no /usr/lib/systemd/system/warpcached.* 2>&1 | grep warpcached || true
        systemd-analyze security --offline=true --threshold=20 warpcached.service >/dev/null && echo sandboxed
        """
        + REMOVE
    )
    assert text.splitlines() == ["sandboxed"]


def test_a_program_is_built_with_the_client(inside):
    if shutil.which("pkg-config") is None or shutil.which("gcc") is None:
        pytest.skip("no compiler")
    text = inside(
        INSTALL
        + """
        ls /packages | grep -q libwarpcache-client-dev || { echo none; exit 0; }
        printf '#include <warpcache/client.h>\\nint main(void) { return 0; }\\n' >/tmp/a.c
        gcc -o /tmp/a /tmp/a.c $(pkg-config --cflags --libs warpcache-client) && /tmp/a && echo built
        """
        + REMOVE
    )
    if text.startswith("none"):
        pytest.skip("the client library is not built")
    assert text.splitlines()[0] == "built"
    assert "left: " not in text


def test_each_package_says_what_it_consists_of(packages, tmp_path):
    """SPDX: each file with its sum, and each package that it depends on with its version on this machine."""
    made = sorted(packages.glob("*.deb"))
    assert any(deb.name.startswith("warpcached_") for deb in made)
    for deb in made:
        name = deb.name.split("_")[0]
        root = tmp_path / name
        subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
        bill_file = root / "usr/share/doc" / name / "sbom.spdx.json"
        bill = json.loads(bill_file.read_text())
        assert (bill["spdxVersion"], bill["dataLicense"]) == ("SPDX-2.3", "CC0-1.0")
        sums = {
            entry["fileName"]: next(sum["checksumValue"] for sum in entry["checksums"] if sum["algorithm"] == "SHA256")
            for entry in bill["files"]
        }
        files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and path != bill_file]
        assert sums == {f"./{path.relative_to(root)}": hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        field = subprocess.run(["dpkg-deb", "-f", deb, "Depends"], capture_output=True, text=True, check=True).stdout
        needed = {part.split()[0] for part in field.split(",") if part.strip()}
        own, *others = bill["packages"]
        assert own["name"] == name and {other["name"] for other in others} == needed
        for other in others:
            if not other["name"].startswith(("warpcache", "libwarpcache")):
                assert other["versionInfo"], other
        ids = [entry["SPDXID"] for entry in (*bill["packages"], *bill["files"])]
        assert len(ids) == len(set(ids))
        ends = {relation["relatedSpdxElement"] for relation in bill["relationships"]}
        assert ends == set(ids)


def test_the_server_for_a_gpu_takes_the_others_place(packages, tmp_path):
    """packaging/build --cuda, of a program with or without a GPU."""
    programs = Path(os.environ.get("SIMT_WARPCACHED", require_target("warpcached").path)).parent
    command = [REPO_ROOT / "packaging" / "build", "--cuda", "--programs", programs, "--output", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    made = {deb.name.split("_")[0]: deb for deb in tmp_path.glob("*.deb")}
    usual = {deb.name.split("_")[0]: deb for deb in packages.glob("*.deb")}
    assert set(made) == set(usual) - {"warpcached"} | {"warpcached-cuda"}

    def read(deb: Path, option: str, *fields: str) -> str:
        return subprocess.run(["dpkg-deb", option, deb, *fields], capture_output=True, text=True, check=True).stdout

    version = read(usual["warpcached"], "-f", "Version").strip()
    control = read(made["warpcached-cuda"], "-f")
    for field in (f"Provides: warpcached (= {version})", "Conflicts: warpcached", "Replaces: warpcached"):
        assert field in control.splitlines(), control
    places = [
        {line.split()[-1].replace("/doc/warpcached-cuda", "/doc/warpcached") for line in read(deb, "-c").splitlines()}
        for deb in (usual["warpcached"], made["warpcached-cuda"])
    ]
    drop_in = "./usr/lib/systemd/system/warpcached.service.d/"
    assert places[1] - places[0] == {drop_in, f"{drop_in}gpu.conf"} and places[0] <= places[1]
    if shutil.which("systemd-analyze") is None:
        return
    # The unit as it is with the drop-in: it reaches the GPU, and is sandboxed otherwise.
    root = tmp_path / "root"
    subprocess.run(["dpkg-deb", "-x", made["warpcached-cuda"], root], check=True)
    units = root / "usr/lib/systemd/system"
    unit = units / "warpcached.service"
    unit.write_text(unit.read_text().replace("/usr/bin/", f"{root}/usr/bin/"))

    def analyze(*words: str) -> str:
        done = subprocess.run(
            ["systemd-analyze", *words],
            env={**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:", "SYSTEMD_COLORS": "0", "LC_ALL": "C.UTF-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=BUILD_TIMEOUT_S,
        )
        return done.stdout

    complaints = analyze("verify", "--man=no", str(unit))
    assert "warpcached" not in complaints and "gpu.conf" not in complaints, complaints
    text = analyze("security", "--offline=true", "--no-pager", "warpcached.service")
    given_up = set(re.findall(r"^✗ (\S+)", text, re.MULTILINE))
    assert "DeviceAllow=char-nvidia* rw" in (units / "warpcached.service.d" / "gpu.conf").read_text().splitlines()
    wanted = {"PrivateDevices=", "MemoryDenyWriteExecute=", "DeviceAllow=", "SystemCallFilter=~@resources", "ProcSubset="}
    assert wanted <= given_up, text
    (units / "warpcached.service.d" / "gpu.conf").unlink()
    before = set(re.findall(r"^✗ (\S+)", analyze("security", "--offline=true", "--no-pager", "warpcached.service"), re.MULTILINE))
    assert given_up - before <= wanted | {"SupplementaryGroups="}, text


@pytest.mark.parametrize("name", ["Containerfile", "Containerfile.cuda"])
def test_what_a_container_file_names_is_there(name):
    """No containers run here: presets, targets and options exist, and the server ends as it is asked to."""
    text = (REPO_ROOT / "packaging" / name).read_text().replace("\\\n", " ")
    words = text.split()
    presets = {preset["name"] for preset in json.loads((REPO_ROOT / "CMakePresets.json").read_text())["configurePresets"]}
    assert {after for before, after in zip(words, words[1:]) if before == "--preset"} <= presets
    assert "packaging/build" in words and "STOPSIGNAL SIGUSR1" in text
    build = re.search(r"packaging/build ([^\n&]*)", text)[1].split()
    help_text = subprocess.run([REPO_ROOT / "packaging" / "build", "--help"], capture_output=True, text=True, check=True).stdout
    assert all(word in help_text for word in build if word.startswith("--"))
    made = re.search(r"--from=build /tree/build/packages/(\S+)_\*\.deb", text)[1]
    assert made == ("warpcached-cuda" if "--cuda" in build else "warpcached")
    program = os.environ.get("SIMT_WARPCACHED", require_target("warpcached").path)
    options = json.loads(re.search(r"^CMD (.*)$", text, re.MULTILINE)[1])
    refused = subprocess.run([program, *options, "--no-such-option"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert refused.returncode == 64 and "--no-such-option" in refused.stderr


def test_completion_and_pages(packages):
    """They are made of -h, and know each option of it."""
    program = os.environ.get("SIMT_WARPCACHED", require_target("warpcached").path)
    help_text = subprocess.run([program, "-h"], capture_output=True, text=True, check=True).stdout
    pages = {
        kind: subprocess.run(
            [REPO_ROOT / "packaging" / "help_pages", kind, program], capture_output=True, text=True, check=True
        ).stdout
        for kind in ("man", "completion")
    }
    options = {word.split("=")[0].rstrip(",") for word in help_text.split() if word.startswith("--")}
    assert {"--memory-limit", "--metrics"} <= options
    for option in options:
        assert option in pages["completion"], option
        assert option.replace("-", "\\-") in pages["man"], option
    subprocess.run(["bash", "-n"], input=pages["completion"], text=True, check=True)
