"""What Fetch needs besides the log: sessions, followers, hints."""
