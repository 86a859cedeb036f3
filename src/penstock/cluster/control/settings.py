"""The settings a controller obeys, as they stand when it looks; its broker keeps them."""

from collections.abc import Callable
from typing import NamedTuple

from penstock.config.broker import BrokerConfig


class ControlSettings(NamedTuple):
    """Defaults are Kafka's."""

    allows_unclean_election: bool = False  # For topics that do not say.
    balances_leaders: bool = True
    balance_every_s: float = 300.0
    imbalance_percent_max: int = 10
    sweep_every_s: float = 30.0
    deletes_topics: bool = True
    with_acls: bool = False  # Whether brokers have an authorizer that obeys them.
    with_tokens: bool = False  # Whether brokers give out delegation tokens.

    @classmethod
    def of(cls, config: BrokerConfig) -> "ControlSettings":
        return cls(
            with_acls=bool(config.authorizer_class_name),
            with_tokens=bool(config.delegation_token_secret_key),
            allows_unclean_election=config.unclean_leader_election_enable,
            balances_leaders=config.auto_leader_rebalance_enable,
            balance_every_s=float(config.leader_imbalance_check_interval_seconds),
            imbalance_percent_max=config.leader_imbalance_per_broker_percentage,
            deletes_topics=config.delete_topic_enable,
        )


Settings = Callable[[], ControlSettings]
