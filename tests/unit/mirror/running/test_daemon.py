"""What tasks of the mirror are forked from stays small."""

import subprocess
import sys

_LOOK = """
import sys
from penstock.mirror.running.daemon import preload_mirror
preload_mirror()
print(sorted({"pyarrow", "pandas", "numpy"} & sys.modules.keys()))
print("penstock.mirror.copying.copier" in sys.modules, "pyspark.worker" in sys.modules)
"""


def test_it_loads_what_tasks_do_and_no_library_for_columns() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", _LOOK], capture_output=True, text=True, check=True
    ).stdout
    assert printed.splitlines() == ["[]", "True True"]
