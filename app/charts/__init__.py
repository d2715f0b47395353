"""The charts of each page, in colours that colour-blind readers tell apart."""
