"""Who runs what: connectors kept as the config topic says, their tasks started, watched, restarted.

planning       what to do next, of what is wanted and what runs (pure)
definitions    the settings that all connectors have (pure)
answers        what REST tells of connectors (pure)
stores         the config and status logs and the states they make
duties         what the leader of a group does for all
loggers        levels of loggers, under Kafka's words
connectors     the plug-ins' connectors, in this process
herder         does what was planned, and answers requests
"""
