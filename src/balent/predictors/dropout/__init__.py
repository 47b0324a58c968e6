"""Networks with dropout, evaluated for all draws together."""
