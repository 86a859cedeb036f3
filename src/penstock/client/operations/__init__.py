"""What Admin can do, a module per subject: functions that ask a cluster and return values."""
