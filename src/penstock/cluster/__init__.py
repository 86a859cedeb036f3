"""The control plane: what the cluster looks like, who may change it, and by which rules.

`image` is the picture every broker holds, `transition` and `placement` are the rules as pure
functions, `controller` carries them out through the metadata store.
"""
