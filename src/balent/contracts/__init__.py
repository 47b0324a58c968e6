"""What balent relies on in a strategy or a predictor, as checks that anybody can call on theirs. Needs no pytest."""
