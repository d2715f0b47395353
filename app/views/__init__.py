"""One module a page, each with `page()`; a folder called pages would make Streamlit run them itself."""
