"""Iceberg tables by pyiceberg: the batch id stands in the table's properties and in each snapshot.

Both change with the files in one commit to the catalog. Without a catalog of the user's own the
table keeps one inside its directory (SQLite), and a `version-hint.text` for engines that read an
Iceberg table by its directory. There is one writer per table (locks.py), so that looking for a
batch and adding it cannot be torn apart by another.
"""

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io.pyarrow import parquet_files_to_data_files, schema_to_pyarrow
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform, IdentityTransform

from penstock.lake.columns.fitting import grow
from penstock.lake.columns.rules import AgreedColumns, Rules
from penstock.lake.columns.schema import lake_schema
from penstock.lake.formats.tables import own_folder
from penstock.lake.spec import TableSpec
from penstock.lake.writing.files import DataFile, rewrite

_BATCH = "penstock.batch-id."  # In the table's properties, followed by the query's id.


class IcebergLakeTable:
    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec
        self._catalog = _catalog(spec)
        try:
            self._table: Table | None = self._catalog.load_table(spec.table_name)
        except NoSuchTableError:
            self._table = None

    def schema(self) -> pa.Schema | None:
        if self._table is None:
            return None
        found = schema_to_pyarrow(self._table.schema(), include_field_ids=False)
        return lake_schema(found)

    def committed(self, query_id: str) -> int:
        if self._table is None:
            return -1
        return int(self._table.properties.get(_BATCH + query_id, -1))

    def evolve(self, target: pa.Schema) -> None:
        target = iceberg_types(target)
        if self._table is None:
            self._table = self._create(target)
            return
        self._check_promotions(target)
        with self._table.update_schema() as update:
            update.union_by_name(target)
        # Our files carry no field ids; new columns must be found by their names.
        mapping = self._table.schema().name_mapping.model_dump_json()
        with self._table.transaction() as change:
            change.set_properties({"schema.name-mapping.default": mapping})
        self._table = self._catalog.load_table(self._spec.table_name)

    def append(self, files: Sequence[DataFile], *, query_id: str, batch_id: int) -> None:
        assert self._table is not None, "evolve() comes first"
        marks = {"penstock.query-id": query_id, "penstock.batch-id": str(batch_id)}
        with self._table.transaction() as change:
            change.set_properties({_BATCH + query_id: str(batch_id)})
            if files:
                paths = [str(Path(self._spec.directory, file.place)) for file in files]
                change.add_files(paths, snapshot_properties=marks, check_duplicate_files=False)
        self._hint()

    def compact(self) -> int:
        if self._table is None:
            return 0
        crowded = self._crowded_partitions()
        if not crowded:
            return 0
        schema = self.schema()
        assert schema is not None
        fresh = [self._put_together(group, schema) for group in crowded]
        with (
            self._table.transaction() as change,
            change.update_snapshot({"penstock.compaction": "true"}).overwrite() as overwrite,
        ):
            for group in crowded:
                for file in group:
                    overwrite.delete_data_file(file)
            for file in parquet_files_to_data_files(
                self._table.io, change.table_metadata, iter(fresh)
            ):
                overwrite.append_data_file(file)
        self._hint()
        return sum(len(group) for group in crowded) - len(fresh)

    def recover(self) -> None:
        """The catalog points to one state or the next; only the hint may be behind."""
        self._hint()

    def _create(self, schema: pa.Schema) -> Table:
        namespace = self._spec.table_name.rpartition(".")[0]
        self._catalog.create_namespace_if_not_exists(namespace)
        with (
            self._catalog.create_table_transaction(
                self._spec.table_name,
                schema=schema,
                location=Path(self._spec.directory).as_uri(),
                properties={"write.metadata.delete-after-commit.enabled": "true"},
            ) as change,
            change.update_spec() as spec,
        ):
            for column in self._spec.partition_by:
                transform: Any = DayTransform() if column.is_date else IdentityTransform()
                spec.add_field(column.source, transform, f"{column.name}_partition")
        return self._catalog.load_table(self._spec.table_name)

    def _check_promotions(self, target: pa.Schema) -> None:
        """Refuse in our own words what Iceberg cannot promote."""
        have = self.schema()
        assert have is not None
        grow(AgreedColumns(schema=have), target, (), Rules(lake_format="iceberg", table=have))

    def _crowded_partitions(self) -> list[list[Any]]:
        assert self._table is not None
        groups: dict[object, list[Any]] = {}
        for task in self._table.scan().plan_files():
            small = task.file.file_size_in_bytes < self._spec.file_bytes_max // 2
            if small and not task.delete_files:
                groups.setdefault(repr(task.file.partition), []).append(task.file)
        return [g for g in groups.values() if len(g) > self._spec.small_files_max]

    def _put_together(self, files: list[Any], schema: pa.Schema) -> str:
        paths = [Path(file.file_path.removeprefix("file://")) for file in files]
        target = paths[0].with_name(f"whole-{uuid.uuid4().hex[:12]}.parquet")
        rewrite(self._spec, paths, target, iceberg_types(schema))
        return str(target)

    def _hint(self) -> None:
        """Engines without our catalog find the newest metadata file by this one."""
        if self._table is None:
            return
        newest = self._table.metadata_location.removeprefix("file://")
        hint = Path(newest).with_name("version-hint.text")
        text = Path(newest).name.removesuffix(".metadata.json")
        if not hint.exists() or hint.read_text() != text:
            fresh = hint.with_suffix(".new")
            fresh.write_text(text)
            fresh.replace(hint)


def iceberg_types(schema: pa.Schema) -> pa.Schema:
    """Iceberg has no whole numbers below 32 bits."""
    return pa.schema([pa.field(f.name, _iceberg_type(f.type)) for f in schema])


def _iceberg_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_int8(kind) or pa.types.is_int16(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _iceberg_type(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _iceberg_type(kind.value_type)))
    return kind


def _catalog(spec: TableSpec) -> Catalog:
    if spec.catalog:
        return load_catalog("penstock", **spec.catalog)
    folder = own_folder(spec)
    return load_catalog(
        "penstock",
        type="sql",
        uri=f"sqlite:///{folder}/catalog.db",
        warehouse=Path(spec.directory).as_uri(),
    )
