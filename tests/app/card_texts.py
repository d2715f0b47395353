"""What cards say, read from their markup."""

import re
from html import unescape


def cards(at):
    """Return each card as a dict: place, title, chips, mark, why, match, share and score."""
    found = []
    for element in at.get("html"):
        body = element.proto.body
        if 'class="rs-place"' not in body:
            continue

        def all_of(name, body=body):
            return [unescape(t) for t in re.findall(rf'class="rs-{name}">(.*?)</', body)]

        found.append(
            {
                "place": int(all_of("place")[0].rstrip(".")),
                "title": all_of("title")[0],
                "chips": all_of("chip"),
                "mark": (all_of("chip rs-mark") or [""])[0],
                "why": all_of("why")[0],
                "match": re.search(r'rs-match" [^>]*>(\w+) match<', body).group(1),
                "share": int(re.search(r'title="[^"]*, (\d+)% of the way', body).group(1)),
                "score": float(re.search(r'title="score ([^,]+),', body).group(1)),
            }
        )
    return found


def titles(at):
    """Return the titles of the cards, in their order."""
    return [card["title"] for card in cards(at)]


def heading(at):
    """Return the title that Explain is about."""
    bodies = [element.proto.body for element in at.get("html")]
    return next(
        unescape(re.search(r"<h3[^>]*>(.*?)</h3>", body).group(1)) for body in bodies if "<h3" in body
    )
