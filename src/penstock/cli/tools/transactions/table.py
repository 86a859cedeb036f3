"""The tables of kafka-transactions: columns as wide as their widest cell, a tab after each."""

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Header and rows; None is printed as Kafka prints it, in words."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return "\n".join(
        "".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True))
        for row in cells
    )
