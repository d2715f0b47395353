"""Why: rules read from kernel machines, and the reasons behind a recommendation."""

from recsys.explain.genetic import Found, genetic_search
from recsys.explain.learn import LearnedRule, learn_rule
from recsys.explain.rule import Rule, agreement, rule_weight, signed_weights
from recsys.explain.search import search_rule

__all__ = [
    "Found",
    "LearnedRule",
    "Rule",
    "agreement",
    "genetic_search",
    "learn_rule",
    "rule_weight",
    "search_rule",
    "signed_weights",
]
