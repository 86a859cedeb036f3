"""Keys and values as the proxy's JSON has them, and the bytes that records hold.

`formats` names them. `plain` has those without a schema: binary as base64, JSON, text. Those with
one put the registry's five-byte header in front; `penstock.schemas.documents` turns them into bytes
and back. `schema_choice` says which schema a request means, `schema_finder` gets it from the
registry (`registry_access`) and remembers it.
"""
