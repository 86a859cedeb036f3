"""The simulated ensemble keeps every promise that the real stores keep."""

from tests.unit.meta import test_store as promises

for _name, _test in vars(promises).items():
    if _name.startswith("test_"):
        globals()[_name] = _test
