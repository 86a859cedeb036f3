"""Topics: their names, their plan, their replicas, the steps that make and remove them."""
