"""Access control: rules about resources, the decision they lead to, and how they are kept."""
