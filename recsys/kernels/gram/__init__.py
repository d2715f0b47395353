"""The Gram matrix of a catalogue's items under a kernel, dense or as a table and a sparse correction."""
