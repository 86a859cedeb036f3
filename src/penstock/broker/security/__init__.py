"""Who comes in and what they may do: the rules of `penstock.security` put to work in a broker."""
