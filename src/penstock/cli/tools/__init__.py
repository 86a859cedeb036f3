"""One module per command, imported only when that command runs; each has `main(argv) -> int`."""
