"""Data & models, third part: the encoder's card, its quality on a corpus, and the paper's ablation."""

from __future__ import annotations

from dataclasses import asdict, fields

import streamlit as st

from avshift_core.config import VIEWS, EncoderConfig
from avshift_core.encoder.weights import read_card
from avshift_core.errors import AVShiftError
from avshift_core.plots.card import losses_figure
from avshift_core.plots.quality import figures_of
from avshift_core.quality.ablation import Ablation, Spread
from avshift_core.quality.ablation import to_json as ablation_json
from avshift_core.quality.aims import not_measured
from avshift_core.quality.describe import describe
from avshift_core.quality.report import Quality, to_json
from avshift_core.scenario.measure.attributes import ATTRIBUTES
from avshift_core.scenario.store.corpus import Corpus
from avshift_core.shift.attributes import TEXTS
from pages.common import state
from pages.common.cached import corpus, workspace
from pages.common.data_corpora import needs_encoding, start_encoding
from pages.common.exports import chart, downloads
from pages.common.frame import DEMO, VIEW_NAMES, corpora
from pages.common.job_list import job_list
from pages.common.jobs import result_of
from pages.common.text import escape

SAMPLES = (5000, 20_000)
LONG = {"probes", "neighbours"}  # figures that need the whole width


@st.cache_resource(show_spinner=False)
def _card() -> dict:
    return read_card()


# The card -----------------------------------------------------------------------------------------------------------


def encoder_part() -> None:
    try:
        card = _card()
    except AVShiftError as error:
        st.error(escape(str(error)), icon=":material/error:")
        return
    data, best = card["data"], card["losses"][card["best_epoch"] - 1]
    st.markdown(f"### The shipped encoder turns a scenario into {card['config']['latent_dim']} numbers.")
    st.markdown(f"Trained on {data['n']:,} scenarios of {data['drives']:,} drives; {data['n_valid_drives']:,} "
                "drives were held out. It sees the ego, the agents around it and the road; it does not see weather, "
                "light or anything that is not in the log.")
    quiet = {"delta_color": "off", "delta_arrow": "off", "border": True, "height": "stretch"}
    with st.grid(4, min_column_width=165):
        st.metric("Model", card["model"][:8], "first half of its id", **quiet,
                  help=f"The id {card['model']} is a hash of the weights; latents carry it, so that those of two "
                  "models are never mixed.")
        st.metric("Latent", f"{card['config']['latent_dim']} numbers", card["output"], **quiet,
                  help="Numbers of a latent z, and their scale.")
        st.metric("Best epoch", f"{card['best_epoch']}", f"of {len(card['losses'])}", **quiet,
                  help="The epoch whose loss on the held-out drives was smallest; its weights were kept.")
        st.metric("Loss, held out", f"{best['held_out']:.2f}", f"{card['losses'][0]['held_out']:.2f} after the first",
                  **quiet, help="Loss on the held-out drives; only its course means something.")
    if "quality" in card:
        with st.container(border=True):
            measured = card["quality"]
            st.markdown("**What it reaches**", help="Aims that a latent space has to reach before its shifts are "
                        "believed, measured on a corpus that it was not trained on.")
            _aims([(a["name"], a["value"], a["least"], a["met"], a["note"]) for a in measured["aims"]])
            st.caption(f"Measured on {measured['n']:,} scenarios of {measured['drives']:,} drives, view "
                       f"“{VIEW_NAMES.get(measured['view'], measured['view'])}”; "
                       f"{measured['trained_share']:.0%} of them were trained on.")
    with st.grid(2, min_column_width=430):
        with st.container(border=True):
            st.markdown("**How it learned**", help="Where the curve of the held-out drives turns up, training stops.")
            chart(losses_figure(card["losses"], card["best_epoch"]), "losses", "Loss of each epoch on training and "
                  "held-out drives")
        with st.container(border=True):
            st.markdown("**What it was taught to keep**", help="Beside rebuilding the scenario. What it was taught can "
                        "be read from a latent by design; that is no proof of understanding.")
            st.markdown(" · ".join(escape(_words(name)) for name in card["attributes"]))
    with st.expander("All settings", icon=":material/tune:"):
        st.table([{"Setting": f.name, "Value": f"{card['config'][f.name]}", "What it is": f.metadata["help"]}
                  for f in fields(EncoderConfig) if f.name in card["config"]], hide_index=True, border="horizontal",
                 alt="Settings of the encoder")
        st.caption(f"Data fingerprint `{data['fingerprint'][:16]}` · "
                   + " · ".join(f"{escape(k)} {escape(v)}" for k, v in card["libraries"].items()))
    aims = {"aims": card["quality"]["aims"]} if "quality" in card else {}
    downloads({"losses": card["losses"], **aims}, report=lambda: {"card": card})


def _words(name: str) -> str:
    """An attribute or an aim in words.

    >>> _words("R2 of ego_speed_mps"), _words("ttc_min_s")
    ('R² of Mean speed of the ego', 'Time to collision, smallest')
    """
    for known in (name, name.removeprefix("R2 of ")):
        text = TEXTS[known][0] if known in TEXTS else ATTRIBUTES[known].text if known in ATTRIBUTES else ""
        if text:
            return text if known == name else f"R² of {text}"
    return name


def _aims(rows: list[tuple[str, float, float, bool, str]]) -> None:
    st.table([{"": ":green[:material/check:]" if met else ":red[:material/close:]", "Aim": escape(_words(name)),
               "Reached": f"{value:.3f}", "Aimed at": f"{least:.3g}", "Note": escape(note)}
              for name, value, least, met, note in rows], hide_index=True, border="horizontal",
             alt="Aims of the latent space and what was reached")


# Quality ------------------------------------------------------------------------------------------------------------


def quality_part() -> None:
    st.markdown("Can this latent space be trusted? The report asks what can be read from a latent, whether neighbours "
                "look alike, whether clusters differ in risk, what leaks, and whether true shifts are kept.")
    opened = _encoded_corpus()
    if opened is None:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        view = state.segmented("quality_view", "View", VIEWS, VIEWS[0], format_func=VIEW_NAMES.get)
        most = state.segmented("quality_most", "Sample, scenarios", SAMPLES, SAMPLES[1], format_func="{:,}".format,
                               help="Whole drives. Pairs of cohorts use every drive.")
    st.caption("The whole report takes minutes; you can go on working meanwhile.")
    found = result_of("quality", "Measuring the encoder", start=False, button="Measure it", url=opened.url,
                      fingerprint=opened.fingerprint, view=view, most=most)
    if found is not None:
        _quality(found)


def _encoded_corpus() -> Corpus | None:
    """The corpus to work on; None, with a way on, where it cannot be used."""
    name = state.select("on", "Corpus", list(corpora()), state.value("corpus", DEMO), width=320)
    try:
        opened = corpus(corpora()[name])
    except AVShiftError as error:
        st.error(escape(str(error)), icon=":material/error:")
        return None
    if needs_encoding(opened):
        st.info("Not all scenarios of this corpus are encoded yet.", icon=":material/info:")
        st.button("Encode it with the shipped model", icon=":material/play_arrow:", on_click=start_encoding,
                  args=(opened.url,))
        job_list(("encode",), shown=3)
        return None
    return opened


def _quality(quality: Quality) -> None:
    met = sum(aim.met for aim in quality.aims)
    st.markdown(f"### {met} of {len(quality.aims)} aims are met.")
    if quality.trained_share > 0:
        st.warning(f"The encoder was trained on {quality.trained_share:.0%} of this corpus: nothing here is held out "
                   "for these scenarios.", icon=":material/warning:")
    with st.container(border=True):
        _aims([(a.name, a.value, a.least, a.met, a.note) for a in quality.aims])
        for name in not_measured(quality.aims):
            st.caption(f"Not measured here: {escape(name)} (no truth, no such scenarios, or too few drives).")
    for note in quality.notes:
        st.caption(f":material/info: {escape(note)}")
    drawn = figures_of(quality)
    name = state.segmented("figure", "Figure", tuple(drawn), next(iter(drawn)), format_func=lambda n: drawn[n][0])
    title, text, draw = drawn[name]
    with st.container(border=True):
        st.markdown(f"**{title}**", help=text)
        chart(draw(), f"quality_{name}", f"{title}. {text}")
    with st.expander("The report in numbers", icon=":material/article:"):
        st.code(describe(quality), language=None, wrap_lines=False)
    downloads({"aims": [asdict(aim) for aim in quality.aims]}, report=lambda: to_json(quality))


# Ablation -----------------------------------------------------------------------------------------------------------


def ablation_part() -> None:
    st.markdown("The paper's table of latent sizes: twelve encoders are trained, and one pair of cohorts is compared "
                "with each of them.")
    st.warning("It takes long (37 minutes on two cores when docs/encoder.md was written), and as long keeps one of the "
               "two places for jobs. Trained models are kept: a stopped ablation goes on.",
               icon=":material/hourglass_top:")
    opened = _encoded_corpus()
    if opened is None:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        seeds = state.number("ablate_seeds", "Trainings of each size", 3, min_value=1, max_value=5, step=1, width=200)
        epochs = state.number("ablate_epochs", "Epochs", 6, min_value=1, max_value=100, step=1, width=160)
        most = state.number("ablate_most", "Scenarios to train on", 8000, min_value=500, max_value=100_000, step=500,
                            width=200)
    out = workspace().folder / "ablation" / f"{opened.fingerprint[:12]}-{int(epochs)}-{int(most)}"
    found = result_of("ablate", "Ablation of the latent", start=False, button="Train and compare", url=opened.url,
                      fingerprint=opened.fingerprint, out=str(out.resolve()), seeds=int(seeds), epochs=int(epochs),
                      most=int(most))
    if found is not None:
        _ablation(found)


def _ablation(ablation: Ablation) -> None:
    st.markdown(f"**{escape(ablation.source)} → {escape(ablation.target)}**, metric {escape(ablation.metric)}")
    st.table([{
        "Latent": escape(s.setting), "Accuracy": spread(s.acc), "Jaccard over seeds": spread(s.jaccard_seeds),
        "by chance": f"{s.jaccard_chance:.3f}", "Jaccard to base": spread(s.jaccard_base),
        "LIS, off by": spread(s.lis_l1, 100, " pp"), "Paper's LIS, off by": spread(s.lis_paper_l1, 100, " pp"),
        "Cell by cell, off by": spread(s.strata_l1, 100, " pp"), "With regions": f"{s.n_with_regions} of {s.acc.n}",
    } for s in ablation.settings], hide_index=True, border="horizontal", alt="Ablation of the latent size")
    yardstick = "the true rate in the target's traffic" if ablation.is_truth else "the target's own rate"
    st.caption(f"Mean ± standard deviation of trainings. Off by: distance from {yardstick}, {ablation.yardstick:.2%}; "
               f"without calibration {100 * ablation.naive_l1:.2f} pp.")
    for caution in ablation.cautions:
        st.caption(f":material/warning: {escape(caution)}")
    downloads({"ablation": [asdict(s) for s in ablation.settings]},
              report=lambda: ablation_json(ablation), figures=False)


def spread(value: Spread | None, scale: float = 1.0, unit: str = "") -> str:
    if value is None or not value.n:
        return "—"
    digits = 3 if scale == 1.0 else 2
    mean = f"{scale * value.mean:.{digits}f}"
    return f"{mean}{unit}" if value.std != value.std else f"{mean} ± {scale * value.std:.{digits}f}{unit}"
