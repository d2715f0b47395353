import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_configuration_is_closed():
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    assert config["server"]["enableXsrfProtection"] is True
    assert config["server"]["address"] == "127.0.0.1"
    assert config["server"]["maxUploadSize"] <= 200
    assert config["client"]["showErrorDetails"] == "none"
    assert config["browser"]["gatherUsageStats"] is False
    assert "secrets.toml" in (ROOT / ".gitignore").read_text()


def test_no_page_renders_raw_html_or_markdown_from_data():
    for path in (ROOT / "app").rglob("*.py"):
        text = path.read_text()
        for bad in ("unsafe_allow_html", "st.html(", "st.markdown(", "st.write(", "components"):
            assert bad not in text, f"{path.name}: {bad}"
        # Markdown elements get our own words and figures only, never titles.
        for call in re.findall(
            r"\.(?:caption|subheader|header|info|warning|success|error)\(([^)]*)", text
        ):
            assert "title" not in call or "titles" not in call, f"{path.name}: {call}"
