"""Commands that make load, and measure or verify it."""
