"""Transactions across brokers: coordinators asked, markers carried, producer ids."""
