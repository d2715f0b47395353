"""Why: rules read from kernel machines, and the reasons behind a recommendation."""

from recsys.explain import wording
from recsys.explain.attributes import Attributes, item_attributes
from recsys.explain.diversity import list_diversity, mmr, tail_items
from recsys.explain.genetic import Found, genetic_search
from recsys.explain.learn import LearnedRule, MeasuredRule, learn_rule, measure_rule
from recsys.explain.people import ItemRule, item_rule, lower_bound
from recsys.explain.reasons import Change, Reasons, WhatIf, changes, reasons, what_if
from recsys.explain.rule import Rule, agreement, rule_weight, signed_weights
from recsys.explain.search import search_rule
from recsys.explain.steering import overlap, similar, steer
from recsys.explain.taste import Following, TasteRule, following, taste_rule
from recsys.explain.wording import because, listing

__all__ = [
    "Attributes",
    "Change",
    "Following",
    "Found",
    "ItemRule",
    "LearnedRule",
    "MeasuredRule",
    "Reasons",
    "Rule",
    "TasteRule",
    "WhatIf",
    "agreement",
    "because",
    "changes",
    "following",
    "genetic_search",
    "item_attributes",
    "item_rule",
    "learn_rule",
    "list_diversity",
    "listing",
    "lower_bound",
    "measure_rule",
    "mmr",
    "overlap",
    "reasons",
    "rule_weight",
    "search_rule",
    "signed_weights",
    "similar",
    "steer",
    "tail_items",
    "taste_rule",
    "what_if",
    "wording",
]
