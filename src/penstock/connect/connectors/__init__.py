"""The connectors of the house, one folder for each system."""
