"""What makes pages: the reference, the figures, the tables of measurements."""
