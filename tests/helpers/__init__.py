"""What tests share: small data, small networks, small runs."""
