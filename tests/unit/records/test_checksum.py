import subprocess
import sys

import crc32c as package
import pytest

from penstock.records.checksum import crc32c


@pytest.mark.parametrize(
    ("data", "checksum"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)],
)
def test_the_checksum_is_crc_32c(data: bytes, checksum: int) -> None:
    for given in (data, bytearray(data), memoryview(data)):
        assert crc32c(given) == checksum == package.crc32c(given)


def test_the_packages_slow_import_is_not_paid() -> None:
    script = (
        f"import sys; sys.path[:0] = {sys.path!r}; import penstock.records.batch; "
        "print('importlib.metadata' in sys.modules, 'cramjam' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False", "False"]
