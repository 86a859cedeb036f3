"""Disks that fill up, and disks that lose what was not synced when the power went.

A small disk is a tmpfs that a ballast file fills. A disk for power cuts is ext4 on a loop device
that commits its journal by itself only every ten minutes: killing the broker and going on with a
copy of the image is what a power cut leaves, synced bytes and nothing else. The broker then also
has to see that the machine was started anew, so it gets another boot id.
"""

import os
import shutil
import subprocess
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.deployment import BrokerNode, Deployment
from tests.faults.injectors.fault import Target
from tests.faults.injectors.signals import some_leader
from tests.support.disk import leave_no_byte

SMALL_BYTES = 64 << 20
LOOP_BYTES = 192 << 20
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def small_missing() -> str | None:
    if os.geteuid() != 0:
        return "mounting a small disk takes root"
    with tempfile.TemporaryDirectory() as place:
        try:
            run("mount", "-t", "tmpfs", "-o", "size=65536", "penstock-faults", place)
            run("umount", place)
        except OSError as error:
            return f"no small disk to be had: {error}"
    return None


def loop_missing() -> str | None:
    if os.geteuid() != 0:
        return "loop devices take root"
    for tool in ("mkfs.ext4", "losetup", "unshare"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    with tempfile.TemporaryDirectory() as place:
        image, mounted = Path(place) / "image", Path(place) / "mounted"
        mounted.mkdir()
        try:
            _make_image(image, 8 << 20)
            _mount_image(image, mounted)
            run("umount", str(mounted))
            boot_id = Path(place) / "boot_id"
            boot_id.write_text(f"{uuid.uuid4()}\n")
            run(*boot_id_prefix(boot_id), "true")
        except OSError as error:
            return f"no loop device or no mount of a boot id: {error}"
    return None


def _make_image(image: Path, size_bytes: int) -> None:
    with image.open("wb") as file:
        file.truncate(size_bytes)
    run("mkfs.ext4", "-q", "-F", str(image))


def _mount_image(image: Path, place: Path) -> None:
    run("mount", "-o", "loop,commit=600", str(image), str(place))


def boot_id_prefix(path: Path) -> tuple[str, ...]:
    """What is put before a command so that it reads this file as the machine's boot id."""
    script = f'mount --bind "$0" {BOOT_ID} && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", script, str(path))


@dataclass(slots=True, kw_only=True)
class SmallDiskDeployment(Deployment):
    """Each broker has a tmpfs of its own."""

    def prepare(self, node: BrokerNode) -> None:
        disk = node.directory / "disk"
        disk.mkdir()
        run("mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "penstock-faults", str(disk))
        self.stack.callback(run, "umount", "--lazy", str(disk))
        node.data = disk / "data"


def fill_disk(target: Target) -> None:
    """The disk of a leader, or of any broker, has no byte left for a while."""
    nodes = list(target.deployment.brokers.values())
    node = some_leader(target) if target.chance.random() < 0.5 else target.chance.choice(nodes)
    target.note(f"the disk of broker {node.broker_id} is full")
    ballast = leave_no_byte(node.data.parent)
    target.hold(target.chance.uniform(2, 6))
    if target.chance.random() < 0.3:
        target.note(f"kill -9 of broker {node.broker_id} on its full disk")
        node.kill()
        if target.chance.random() < 0.5:
            leave_no_byte(node.data.parent)
            target.note(f"broker {node.broker_id} starts on its full disk")
            node.launch()
            node.wait_until_ready(timeout_s=90)
    ballast.unlink()
    target.note(f"the disk of broker {node.broker_id} has space again")
    if not node.is_running:
        node.kill()
        node.launch()
        node.wait_until_ready(timeout_s=90)


@dataclass(slots=True, kw_only=True)
class LoopDeployment(Deployment):
    """Each broker's logs are on an ext4 of its own."""

    cuts: dict[int, int] = field(default_factory=dict)

    def prepare(self, node: BrokerNode) -> None:
        image, place = self._image(node), node.directory / "disk"
        place.mkdir()
        _make_image(image, LOOP_BYTES)
        _mount_image(image, place)
        self.stack.callback(self._unmount, place)
        node.data = place / "data"
        self.renew_boot_id(node)
        node.prefix = boot_id_prefix(self._boot_id(node))

    def _image(self, node: BrokerNode) -> Path:
        return node.directory / f"image-{self.cuts.get(node.broker_id, 0)}"

    def _boot_id(self, node: BrokerNode) -> Path:
        return node.directory / "boot_id"

    def renew_boot_id(self, node: BrokerNode) -> None:
        self._boot_id(node).write_text(f"{uuid.uuid4()}\n")

    def _unmount(self, place: Path) -> None:
        run("umount", "--lazy", str(place))

    def cut_power(self, node: BrokerNode) -> None:
        """The broker is gone, and so is every byte that it had not synced."""
        old = self._image(node)
        node.kill()
        self.cuts[node.broker_id] = self.cuts.get(node.broker_id, 0) + 1
        new, place = self._image(node), node.directory / "disk"
        run("cp", "--sparse=always", str(old), str(new))
        self._unmount(place)
        old.unlink()
        _mount_image(new, place)
        self.renew_boot_id(node)


def _loop(target: Target) -> LoopDeployment:
    assert isinstance(target.deployment, LoopDeployment)
    return target.deployment


def _cut_power(target: Target, nodes: list[BrokerNode]) -> None:
    deployment = _loop(target)
    for node in nodes:
        target.note(f"power cut of broker {node.broker_id}")
        deployment.cut_power(node)
    target.hold(target.chance.uniform(0, 2))
    for node in nodes:
        node.launch()
    if target.chance.random() < 0.3:
        # A second crash before anybody took note of the first: what is lost stays lost.
        target.hold(target.chance.uniform(0.05, 0.6))
        target.note(f"kill -9 of broker {nodes[0].broker_id} while it starts")
        nodes[0].kill()
        nodes[0].launch()
    for node in nodes:
        node.wait_until_ready(timeout_s=90)
        target.note(f"broker {node.broker_id} is back")


def cut_power_of_one(target: Target) -> None:
    _cut_power(target, [some_leader(target)])


def cut_power_of_two(target: Target) -> None:
    """Everything acknowledged is still with the third, if it was in sync when they fell."""
    target.deployment.wait_until_whole([target.topic, f"{target.topic}-out"])
    nodes = list(target.deployment.brokers.values())
    _cut_power(target, target.chance.sample(nodes, min(2, len(nodes))))


def cut_power_of_all_but_one(target: Target) -> None:
    """The third merely crashes, and is back last: until then nobody may lead who lost records."""
    target.deployment.wait_until_whole([target.topic, f"{target.topic}-out"])
    deployment = _loop(target)
    nodes = list(deployment.brokers.values())
    keeper, *others = target.chance.sample(nodes, len(nodes))
    for node in others:
        target.note(f"power cut of broker {node.broker_id}")
        deployment.cut_power(node)
    target.note(f"kill -9 of broker {keeper.broker_id}")
    keeper.kill()
    for node in others:
        node.launch()
    target.hold(target.chance.uniform(2, 5))
    target.note(f"broker {keeper.broker_id} starts")
    keeper.launch()
    for node in nodes:
        node.wait_until_ready(timeout_s=90)
    target.note("all are back")


def cut_power_of_all(target: Target) -> None:
    """Every record was synced before it was acknowledged, so nothing is lost. But nobody can know
    that of the others: who leads is then for an operator to say, by an unclean election."""
    _cut_power(target, list(target.deployment.brokers.values()))
    target.deployment.wait_for_all_brokers()
    target.note("an operator asks for unclean elections")
    target.deployment.elect_uncleanly()
