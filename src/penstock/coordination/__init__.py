"""The shell around every coordinator: machines that live in the partitions of a state topic."""
