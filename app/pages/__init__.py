"""One module a page, each with `page()`."""
