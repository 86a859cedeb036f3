"""Reading topics: offsets planned on the driver, ranges read by the tasks."""
