"""What tests and benches share: real processes, a client of raw bytes, and patience."""
