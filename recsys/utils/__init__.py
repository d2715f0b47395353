"""Small things that every room uses: checks at the boundary, sparse rows, memory, files, text."""
