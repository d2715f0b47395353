"""The Streamlit app: `streamlit run app/main.py`."""
