"""Tables read back by the libraries their users have, not by the code that wrote them."""

from typing import Any

from penstock.lake.spec import TableSpec


def rows_of(spec: TableSpec) -> list[dict[str, Any]]:
    """All rows of the table as a reader finds them now."""
    if spec.format == "delta":
        from deltalake import DeltaTable

        return DeltaTable(spec.directory).to_pyarrow_table().to_pylist()
    if spec.format == "iceberg":
        return iceberg_table(spec).scan().to_arrow().to_pylist()
    import duckdb

    found = duckdb.sql(
        f"SELECT * FROM read_parquet('{spec.directory}/**/*.parquet', hive_partitioning = true, "
        "union_by_name = true)"
    )
    return found.to_arrow_table().to_pylist()


def iceberg_table(spec: TableSpec) -> Any:
    """By the catalog in the table's directory."""
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog(
        "penstock", type="sql", uri=f"sqlite:///{spec.directory}/_penstock/catalog.db"
    )
    return catalog.load_table(spec.table_name)
