"""The constants name settings that exist."""

import pytest

from penstock.client.config_names import ConsumerConfig, ProducerConfig
from penstock.client.settings import Role, known_keys


@pytest.mark.parametrize(
    ("names", "role"), [(ProducerConfig, "producer"), (ConsumerConfig, "consumer")]
)
def test_every_constant_is_a_known_setting(names: type, role: Role) -> None:
    values = {
        value
        for kind in names.__mro__
        for name, value in vars(kind).items()
        if name.isupper() and isinstance(value, str)
    }
    assert len(values) > 20
    assert values <= known_keys(role)
