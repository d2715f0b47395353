"""Scores with a prior behind them, as pairs."""


def prior(popularity):
    """Return how popular items are; one that nobody has is as popular as the mean of the others."""
    known = [float(count) for count in popularity if count > 0]
    return [float(count) if count > 0 else sum(known) / len(known) for count in popularity]


def places(scores, prior):
    """Return how many different pairs (score, prior) are below each item's."""
    pairs = [(float(score), float(value)) for score, value in zip(scores, prior, strict=True)]
    below = sorted(set(pairs))
    return [below.index(pair) for pair in pairs]


def ranking(scores, prior, allowed):
    """Return the allowed items, best first: by score, then by prior, then by index."""
    return sorted(allowed, key=lambda item: (-float(scores[item]), -float(prior[item]), item))
