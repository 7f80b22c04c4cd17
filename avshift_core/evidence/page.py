"""Facts and pictures -> one HTML file. It runs nothing and asks nobody: a policy in its head forbids both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from avshift_core.evidence import sections
from avshift_core.evidence.markup import Safe, join, paragraphs, tag
from avshift_core.evidence.numbers import count, rate, span

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
STYLE = Path(__file__).with_name("style.css")
FOOT = """@page {{ @bottom-left {{ content: "AVShift evidence pack, run {run}"; font: 8pt sans-serif; color: #666; }}
  @bottom-right {{ content: counter(page) " / " counter(pages); font: 8pt sans-serif; color: #666; }} }}
"""  # on every printed page
KIND_OF_VERDICT = {"no_shift": "ok", "localize": "caution", "global_shift": "refuse"}


def page(facts: Mapping, maps: Mapping[str, Safe], scenes: Mapping[str, Safe], no_scenes: str = "") -> str:
    """The whole file.

    Args:
        facts: of facts.gather. maps: of maps.map_pictures. scenes: scenario id -> its picture.
        no_scenes: why there are no pictures of scenarios, where there are none.
    """
    parts = sections.parts(facts, maps, scenes, no_scenes)
    contents = tag("nav", tag("ol", *(tag("li", tag("a", title, href=f"#{key}")) for key, title, _ in parts)),
                   aria_label="Contents")
    body = [_head(facts), contents]
    body += [tag("section", tag("h2", f"{i}. {title}"), content, id=key)
             for i, (key, title, content) in enumerate(parts, start=1)]
    title = f"Evidence pack · {facts['words']['title']} · run {facts['run']}"
    head = join([
        Safe('<meta charset="utf-8">'), Safe(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        Safe('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Safe('<meta name="color-scheme" content="light dark">'), tag("title", title),
        tag("style", Safe(STYLE.read_text(encoding="utf-8")), Safe(FOOT.format(run=re.sub(r"\W", "", facts["run"])))),
    ], "\n")
    lines = ["<!doctype html>", '<html lang="en">', "<head>", head, "</head>", "<body>", *body, "</body>", "</html>",
             ""]
    return "\n".join(lines)


def _head(facts: Mapping) -> Safe:
    """Title, the dated line on a line of its own, the answer and the key numbers."""
    verdict = facts["verdict"]
    metric = facts["metric"]
    event = f": {metric['event']}" if metric else ""
    badges = [tag("span", verdict["title"], class_=f"badge {KIND_OF_VERDICT[verdict['verdict']]}")]
    if not verdict["decided"]:
        badges.append(tag("span", "undecided", class_="badge"))
    if metric is not None and metric["headline"] is None:
        badges.append(tag("span", "calibrated rate withheld", class_="badge refuse"))
    answer = tag("div", tag("p", facts["words"]["conclusion"][0]), paragraphs(facts["words"]["conclusion"][1:]),
                 class_="answer")
    return join([
        tag("p", f"AVShift evidence pack · run {facts['run']} · engine {facts['engine']}", class_="kicker"),
        tag("h1", f"{facts['words']['title']}{event}"),
        tag("p", f"Made {facts['made']}", class_="soft dated"),
        tag("p", join(badges, " ")), answer, _keys(facts),
    ], "\n")


def _keys(facts: Mapping) -> Safe:
    verdict, metric = facts["verdict"], facts["metric"]
    keys = [("Advantage over chance", f"{verdict['gamma_hat']:.3f}",
             f"{verdict['gamma_lcb']:.3f} to {verdict['gamma_ucb']:.3f}")]
    if metric is not None:
        naive, target = (metric["estimates"][name]["value"] for name in ("naive", "target"))
        keys.append(("Observed in P", rate(naive["mu"]), span(naive)))
        if metric["headline"] is None:
            keys.append(("Calibrated to Q", "withheld", "see the checks"))
        else:
            value = metric["estimates"][metric["headline"]]["value"]
            keys.append(("Calibrated to Q", rate(value["mu"]), span(value)))
        keys.append(("Observed in Q", rate(target["mu"]), span(target)))
        keys.append(("Effective scenarios", f"{metric['ess']:,.0f}",
                     f"of {count(facts['source']['n'], 'scenario')} of P"))
    return tag("div", *(tag("div", tag("span", name), tag("b", value), tag("span", more), class_="key")
                        for name, value, more in keys), class_="keys")
