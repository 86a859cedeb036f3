"""What an application is refused for before it runs."""

import pytest
from tests.support.streams_scripts import built

from penstock.errors import CommandError
from penstock.streams.running.preparing import refuse_unsafe


def test_a_join_that_batches_can_get_wrong_is_refused() -> None:
    with pytest.raises(CommandError, match="left_join_foreign_key"):
        refuse_unsafe(built("foreign_key"))
    refuse_unsafe(built("foreign_key_left"))
