"""Rules in disjunctive normal form: their value, the searches for them, and user profile rules."""
