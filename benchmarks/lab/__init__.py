"""Scripts that rerun tables and figures of the papers; `--help` of each says what it takes."""
