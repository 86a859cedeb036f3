"""A bucket of S3 as an `ObjectStore`.

An object that is larger than a part is sent in parts; it appears when the last call says so, so a
task that dies in between leaves nothing that a reader could find.
"""

from collections.abc import Iterator, Mapping
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from penstock.connect.connectors.aws import aws_client, aws_errors

_MEMORY_BYTES = 1 << 20


class S3Store:
    """One bucket; the settings are those of `s3/settings.py`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._bucket = config["s3.bucket.name"]
        self._part_bytes = config.get("s3.part.size", 0)
        self._more: dict[str, str] = {}
        if config.get("s3.acl.canned"):
            self._more["ACL"] = config["s3.acl.canned"]
        if config.get("s3.ssea.name"):
            self._more["ServerSideEncryption"] = config["s3.ssea.name"]
        is_path = config["s3.path.style.access.enabled"]
        self._client = aws_client(
            "s3",
            config,
            region=config["s3.region"],
            url=config["store.url"],
            attempts=config["s3.part.retries"] + 1,
            s3={"addressing_style": "path" if is_path else "auto"},
        )

    def check(self) -> None:
        with aws_errors(f"asking for the bucket {self._bucket}"):
            self._client.head_bucket(Bucket=self._bucket)

    def put(self, name: str, content: IO[bytes]) -> None:
        size_bytes = content.seek(0, 2)
        content.seek(0)
        with aws_errors(f"storing {name} in the bucket {self._bucket}"):
            if size_bytes <= self._part_bytes:
                self._client.put_object(
                    Bucket=self._bucket, Key=name, Body=content.read(), **self._more
                )
            else:
                self._put_parts(name, content)

    def get(self, name: str) -> IO[bytes]:
        made = SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115 (the caller closes it)
        with aws_errors(f"reading {name} of the bucket {self._bucket}"):
            body = self._client.get_object(Bucket=self._bucket, Key=name)["Body"]
            for chunk in body.iter_chunks(_MEMORY_BYTES):
                made.write(chunk)
        made.seek(0)
        return made

    def folders(self, folder: str) -> Iterator[str]:
        yield folder
        prefix = f"{folder}/" if folder else ""
        for page in self._pages(prefix, ""):
            for one in page.get("CommonPrefixes", []):
                yield from self.folders(one["Prefix"].rstrip("/"))

    def names(self, folder: str, after: str = "") -> Iterator[str]:
        for page in self._pages(f"{folder}/" if folder else "", after):
            for one in page.get("Contents", []):
                if not one["Key"].endswith("/"):  # A mark of a folder, which consoles leave.
                    yield one["Key"]

    def close(self) -> None:
        self._client.close()

    def _pages(self, prefix: str, after: str) -> Iterator[dict[str, Any]]:
        wanted = {"Bucket": self._bucket, "Prefix": prefix, "Delimiter": "/"}
        if after:
            wanted["StartAfter"] = after
        with aws_errors(f"listing the bucket {self._bucket}"):
            yield from self._client.get_paginator("list_objects_v2").paginate(**wanted)

    def _put_parts(self, name: str, content: IO[bytes]) -> None:
        at = {"Bucket": self._bucket, "Key": name}
        upload = self._client.create_multipart_upload(**at, **self._more)["UploadId"]
        try:
            parts: list[dict[str, Any]] = []
            while chunk := content.read(self._part_bytes):
                number = len(parts) + 1
                sent = self._client.upload_part(
                    **at, UploadId=upload, PartNumber=number, Body=chunk
                )
                parts.append({"PartNumber": number, "ETag": sent["ETag"]})
            self._client.complete_multipart_upload(
                **at, UploadId=upload, MultipartUpload={"Parts": parts}
            )
        except Exception:
            self._abort(at, upload)
            raise

    def _abort(self, at: Mapping[str, str], upload: str) -> None:
        """Parts that are not given up are paid for."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._client.abort_multipart_upload(**at, UploadId=upload)
        except (BotoCoreError, ClientError):
            return  # The store is away; a rule of the bucket takes such parts.
