"""The commands: `penstock ...`, and every kafka-* tool under its own name. Parse, call, print."""
