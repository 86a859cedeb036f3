"""Let an application begin anew: its state, its internal topics, its group, and its sinks' notes.

Inputs and outputs stay. It is `kafka-streams-application-reset` and `clean_up` in one.
"""

from dataclasses import dataclass

from penstock.client.operations.groups import delete_groups, list_groups
from penstock.client.operations.topics import delete_topics, list_topics
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import CommandError, GroupIdNotFound
from penstock.streams.running.folder import ApplicationFolder

_TIMEOUT_MS = 30_000
_SUFFIXES = ("-changelog", "-repartition")
_FOREIGN_KEY = ("-subscription-registration-", "-subscription-response-")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationReset:
    """What a reset would remove."""

    folder: ApplicationFolder
    topics: list[str]
    groups: list[str]

    def lines(self) -> list[str]:
        """For people, before they agree."""
        found = [f"  the state in {self.folder.path}"] if self.folder.path.is_dir() else []
        found += [f"  the internal topic {topic}" for topic in self.topics]
        found += [f"  the consumer group {group} with its offsets" for group in self.groups]
        return found or ["  nothing: it has neither state nor topics nor a group"]


def is_internal(application_id: str, topic: str) -> bool:
    """Whether a topic is named as this application's internal ones are."""
    if not topic.startswith(f"{application_id}-"):
        return False
    foreign = topic.endswith("-topic") and any(word in topic.lower() for word in _FOREIGN_KEY)
    return topic.endswith(_SUFFIXES) or foreign


def plan_application_reset(
    cluster: ClusterClient, application_id: str, folder: ApplicationFolder
) -> ApplicationReset:
    """What there is to remove; CommandError while the application runs."""
    if folder.is_running():
        raise CommandError(f"The application {application_id} runs; stop it first.")
    topics = [listing.name for listing in list_topics(cluster)]
    groups = [group.group_id for group in list_groups(cluster)]
    notes = f"{application_id}-stage-"
    return ApplicationReset(
        folder=folder,
        topics=[topic for topic in topics if is_internal(application_id, topic)],
        groups=[g for g in groups if g == application_id or g.startswith(notes)],
    )


def carry_out_reset(plan: ApplicationReset, cluster: ClusterClient) -> None:
    """Remove it; state last, so that a reset that was cut off is refused and can be done again."""
    for group, error in delete_groups(cluster, plan.groups).items():
        if error is not None and not isinstance(error, GroupIdNotFound):
            raise CommandError(f"The group {group} could not be deleted: {error}")
    if plan.topics:
        delete_topics(cluster, plan.topics, timeout_ms=_TIMEOUT_MS)
    plan.folder.remove()
