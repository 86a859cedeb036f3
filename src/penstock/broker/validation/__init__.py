"""Topics that check the schemas of their records before they append them."""
