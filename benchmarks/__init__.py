"""Scripts that measure, and what they found."""
