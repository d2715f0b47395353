"""What each page of the Lab answers, and what its result looks like: that of the sample."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st


@dataclass(frozen=True)
class Example:
    """A page's question and a finding on the sample, with the first rows of its table.

    Tests compute the numbers anew.
    """

    question: str
    finding: str
    table: dict[str, list[str]] = field(default_factory=dict)


EXAMPLES = {
    "interactions": Example(
        "Which features matter together?",
        "products of two features raise the AUC on the test rows from 0.626 to 0.666.",
        {
            "interaction": [
                "genres=Action × genres=Animation",
                "genres=Romance × genres=Sci-Fi",
                "genres=Action × genres=Film-Noir",
            ],
            "weight": ["-0.96", "-0.80", "0.61"],
            "rows": ["721", "277", "527"],
        },
    ),
    "links": Example(
        "Which objects belong together, and by which features?",
        "a factorization machine gives a held-out like a higher score than a pair without one in 65.6% "
        "of the cases; half would be chance.",
        {
            "model": [
                "fm:n_components=10,max_iter=30",
                "pair-svm",
                "bilinear:n_components=10,max_iter=30",
            ],
            "AUC": ["0.656", "0.619", "0.618"],
            "±": ["0.007", "0.007", "0.007"],
        },
    ),
    "kernels": Example(
        "How alike should a kernel find two items?",
        "disjunctions (md) of more parts raise the AUC from 0.787 at degree 1 to 0.809 at degree 4; "
        "conjunctions (mc) are best at degree 2, with 0.792.",
        {
            "degree": ["1", "2", "3", "4"],
            "AUC with md": ["0.787", "0.804", "0.808", "0.809"],
            "AUC with mc": ["0.787", "0.792", "0.780", "0.763"],
        },
    ),
    "map": Example(
        "Which items are alike to a model, and where among them are a user's?",
        "Burning Empire (1956), recommended first to u0001, is nearest to Golden Kingdom (1954), which "
        "u0001 likes.",
    ),
    "rules": Example(
        "Which rules hold for what users like?",
        "u0030 likes 1960s: of 16 likes set aside, 9 follow it; of 267 items not liked, 0.",
        {
            "user": ["u0267", "u0030", "u0012"],
            "rule": [
                "Crime and Film-Noir, or Fantasy and Romance",
                "1960s",
                "1970s and Thriller",
            ],
            "set aside": ["14", "16", "9"],
            "follow it": ["12", "9", "7"],
            "others": ["273", "267", "282"],
            "others that do": ["0", "0", "2"],
        },
    ),
}  # fmt: skip


def question(name: str) -> None:
    """Show the question that a page answers, and a finding."""
    example = EXAMPLES[name]
    st.subheader(example.question, anchor=False)
    st.text(f"An example, of the sample: {example.finding}")


def empty(name: str) -> None:
    """Show, where nothing is computed yet, what a result looks like."""
    with st.container(border=True):
        st.caption("What a result looks like (an example, of the sample)")
        st.table(EXAMPLES[name].table)
