"""The metadata store in one file, for a broker of its own."""
