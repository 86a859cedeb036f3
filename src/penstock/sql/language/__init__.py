"""The language: text becomes statements, and statements become text again. Nothing runs here."""
