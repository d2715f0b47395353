"""Rules in disjunctive normal form: their worth, the searches for them, and a user's taste as one."""
