"""The extension, built from the source as it is now."""

from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import cast

import pytest

from penstock.native import MODULE, NativeModule
from penstock.native.build import CannotBuild, build, target_in


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> NativeModule:
    """The module, whether or not set-up has built one."""
    target = target_in(tmp_path_factory.mktemp("native"))
    try:
        build(target)
    except CannotBuild as error:
        pytest.skip(str(error))
    loader = ExtensionFileLoader(MODULE, str(target))
    spec = spec_from_file_location(MODULE, target, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return cast(NativeModule, module)
