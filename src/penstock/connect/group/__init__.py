"""Workers as one group that shares connectors and tasks out among its members.

told           what members tell each other, in Apache Connect's bytes (pure)
assigning      who gets what, who gives what up (pure)
session_keys   signatures of requests between workers (pure)
membership     one worker's part in the group
peers          requests to the other workers
"""
