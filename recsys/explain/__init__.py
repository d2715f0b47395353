"""Why: rules read from kernel machines, and the reasons behind a recommendation."""

from recsys.explain import text
from recsys.explain.association import ItemRule, item_rule, lower_bound
from recsys.explain.contributions import Reasons, reasons, reasons_for_items
from recsys.explain.counterfactual_path import Steps, into_list, out_of_list
from recsys.explain.counterfactuals import Change, WhatIf, changes, what_if
from recsys.explain.decomposition import Decomposition, PartShare, Product, blend_parts, products
from recsys.explain.recency import Age, ages, in_time
from recsys.explain.rules.all_users import Discoveries, discover_rules
from recsys.explain.rules.discovery import (
    Discovery,
    RuleTest,
    discover,
    likes_rule,
    q_values,
    ranker_rule,
)
from recsys.explain.rules.item_attributes import Attributes, item_attributes
from recsys.explain.rules.item_odds import item_odds
from recsys.explain.rules.learn import LearnedRule, MeasuredRule, learn_rule, measure_rule
from recsys.explain.rules.rule import Rule, agreement, rule_weight, signed_weights
from recsys.explain.rules.search import search_rule
from recsys.explain.rules.search_result import SearchResult
from recsys.explain.rules.top_formulas import TopFormulas, WeightedFormula, top_formulas
from recsys.explain.rules.user_rules import Following, TasteRule, following, taste_rule
from recsys.explain.text import because, listing

__all__ = [
    "Age",
    "Attributes",
    "Change",
    "Discoveries",
    "Discovery",
    "Following",
    "TopFormulas",
    "ItemRule",
    "LearnedRule",
    "Decomposition",
    "MeasuredRule",
    "PartShare",
    "Product",
    "Reasons",
    "Rule",
    "RuleTest",
    "SearchResult",
    "Steps",
    "TasteRule",
    "WeightedFormula",
    "WhatIf",
    "ages",
    "agreement",
    "because",
    "blend_parts",
    "changes",
    "discover",
    "discover_rules",
    "following",
    "top_formulas",
    "in_time",
    "into_list",
    "item_attributes",
    "item_odds",
    "item_rule",
    "learn_rule",
    "likes_rule",
    "listing",
    "lower_bound",
    "measure_rule",
    "out_of_list",
    "products",
    "q_values",
    "ranker_rule",
    "reasons",
    "reasons_for_items",
    "rule_weight",
    "search_rule",
    "signed_weights",
    "taste_rule",
    "text",
    "what_if",
]
