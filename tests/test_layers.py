"""One direction of imports, a light `import avshift_core`, and one name for each of the paper's symbols."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = ["errors", "config", "words", "files", "progress", "threads", "versions", "cluster", "parallel", "archive",
         "workspace", "scenario", "notebook", "encoder", "latent", "shift", "report", "quality", "benchmark",
         "laboratory", "comparison", "monitoring", "jobs", "glossary", "plots", "evidence", "commands", "__main__"]
SYMBOLS = [
    "acc", "gamma_hat", "gamma_lcb", "gamma_ucb", "gamma_small", "gamma_large", "n_te", "n_neighbors", "h", "h_bar",
    "s", "c", "r", "support_eps", "posterior_eps", "m_min", "p_value", "p_adj", "n_regions", "p_k", "q_k", "w_k", "w",
    "B", "mu_naive", "mu_target", "mu_lis", "nms_lambda", "attr_weight",
]


def modules():
    return sorted((ROOT / "avshift_core").rglob("*.py"))


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_layer_imports_only_what_stands_to_its_left(path):
    parts = path.relative_to(ROOT / "avshift_core").with_suffix("").parts
    if parts == ("__init__",):
        return
    own = ORDER.index(parts[0])
    for name in imports(path):
        if name.startswith("avshift_core."):
            assert ORDER.index(name.split(".")[1]) <= own, f"{path} imports {name}"
        assert name.split(".")[0] != "streamlit"
        if name.split(".")[0] == "torch":
            assert parts[0] == "encoder" or parts in (("shift", "mlp"), ("benchmark",))
        if name.split(".")[0] in ("dask", "distributed"):
            assert parts == ("cluster",)


@pytest.mark.parametrize("path", [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))], ids=lambda p: p.name)
def test_pages_do_not_compute(path):
    assert not {"numpy", "pandas", "scipy", "sklearn", "torch", "umap"} & {n.split(".")[0] for n in imports(path)}


def test_importing_the_package_is_light():
    code = ("import sys, avshift_core, avshift_core.parallel; print([m for m in ('torch', 'umap', 'plotly', 'sklearn', "
            "'numpy', 'dask', 'distributed') if m in sys.modules])")
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_every_symbol_has_its_name_in_the_code():
    names = set()
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            names |= {getattr(node, key) for key in ("id", "arg", "attr", "name") if isinstance(
                getattr(node, key, None), str)}
    assert [symbol for symbol in SYMBOLS if symbol not in names] == []
