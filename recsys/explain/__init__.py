"""Explanations: reasons for recommendations, and rules of kernel machines."""

from recsys.explain import text
from recsys.explain.counterfactuals import Change, WhatIf, what_if
from recsys.explain.item_rules import ItemRule, item_rule, lower_bound
from recsys.explain.profile_rules import Attributes, TasteRule, item_attributes, taste_rule
from recsys.explain.reasons import (
    PartShare,
    Reasons,
    blend_parts,
    reasons,
    reasons_for_lists,
)
from recsys.explain.rule import Rule, agreement, rule_weight, signed_weights
from recsys.explain.rule_learning import LearnedRule, MeasuredRule, learn_rule, measure_rule
from recsys.explain.rule_search import SearchResult, search_rule
from recsys.explain.text import because

__all__ = [
    "Attributes",
    "Change",
    "ItemRule",
    "LearnedRule",
    "MeasuredRule",
    "PartShare",
    "Reasons",
    "Rule",
    "SearchResult",
    "TasteRule",
    "WhatIf",
    "agreement",
    "because",
    "blend_parts",
    "item_attributes",
    "item_rule",
    "learn_rule",
    "lower_bound",
    "measure_rule",
    "reasons",
    "reasons_for_lists",
    "rule_weight",
    "search_rule",
    "signed_weights",
    "taste_rule",
    "text",
    "what_if",
]
