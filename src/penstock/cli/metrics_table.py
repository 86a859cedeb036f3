"""Client metrics as Kafka's perf tools print them at the end: a name with its tags, and a value."""

from penstock.client.values import Metrics


def metrics_table(metrics: Metrics) -> str:
    """`Metric Name  Value`, one line each, by group and name."""
    rows = {
        f"{name.group}:{name.name}:{_tags(name.tags)}": metric.value
        for name, metric in metrics.items()
    }
    width = max((len(key) for key in rows), default=20)
    lines = [f"\n{'Metric Name':<{width}}   Value"]
    lines += [f"{key:<{width}} : {value:.3f}" for key, value in sorted(rows.items())]
    return "\n".join(lines)


def _tags(tags: tuple[tuple[str, str], ...]) -> str:
    return "{" + ", ".join(f"{key}={value}" for key, value in tags) + "}"
