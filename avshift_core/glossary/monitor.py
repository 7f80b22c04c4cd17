"""The monitor: words for evidence that may be looked at every week."""

from __future__ import annotations

from avshift_core.glossary.entry import Entry

ENTRIES = (
    Entry(
        "reference-period", "Reference period",
        "The weeks that later ones are held against: traffic and rates as they are when nothing has changed.",
        "When it holds too few drives, or weeks that were unusual themselves: what is usual then looks like a change.",
        also="monitor baseline",
    ),
    Entry(
        "e-process", "Evidence process",
        "A bettor starts with 1 and bets on every drive that it lies above most of those before it, in the score of "
        "the traffic or in the rate of a metric. Without a change the bets are fair: growing rich is evidence of one.",
        "When drives differ from week to week in what does not matter, such as the weather: that is a change to the "
        "bettor, too.",
        r"W_n=\prod_{i\le n}f_i(p_i),\qquad f_i\ge0,\ \int_0^1 f_i=1,\qquad\mathbb E\,W_n=1", "",
        also="e-value betting martingale sequential test monitor",
    ),
    Entry(
        "wealth", "Wealth",
        "What the bettor has now. Without a change it ever reaches 20 with a chance of at most one in twenty; a wealth "
        "below 1 means that the bets have lost, and nothing speaks for a change.",
        "As a size of the change: many drives with a slight change give as much as a few with a great one.",
        r"P\left(\sup_n W_n\ge 1/\alpha\right)\le\alpha", "", also="Ville alarm threshold monitor",
    ),
    Entry(
        "anytime-valid", "Anytime-valid",
        "A promise that holds however often one looks, and whenever one stops. Looking every week at an ordinary test "
        "of level 5 % raises a false alarm in most years; this does not.",
        "When settings, reference or seed are changed after looking: that is another monitor, with its own promise.",
        also="optional stopping peeking sequential false alarm monitor",
    ),
    Entry(
        "rank-p-value", "Rank of a drive",
        "The share of all earlier drives that score higher, ties broken by chance. Without a change it is any number "
        "between 0 and 1 with the same chance, and the ranks are independent.",
        "When drives of one day are alike: ranks are then not independent. Days can be ranked instead of drives.",
        r"p_n=\frac{\#\{i<n:s_i>s_n\}+U_n\,\#\{i\le n:s_i=s_n\}}{n}", "", also="conformal p-value exchangeable monitor",
    ),
    Entry(
        "p-anytime", "Anytime p-value",
        "The smallest level at which an alarm would have been raised by now: the number of curves over the largest "
        "wealth. It may be read every week.",
        "As the chance that nothing has changed: it is the chance of so much evidence if nothing has.",
        r"p=\min\left(1,\ \frac{K}{\max_n W_n}\right)", "", also="p_anytime monitor",
    ),
)
