# Two commands: `make run` opens the dashboard, `make test` runs every check. Both install all they need.
PYTHON ?= python3
VENV   ?= .venv
PORT   ?= 8501
BIN    := $(VENV)/bin
# A process a core, each with one thread; tests of a file stay together, as they share what is slow to make, and start
# in the order of tests/conftest.py.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.PHONY: run test install fast lint browser clean

run: $(VENV)/.ready
	$(BIN)/streamlit run serve.py --server.port $(PORT)

test: $(VENV)/.ready browser lint
	$(PYTEST)

install: $(VENV)/.ready

fast: $(VENV)/.ready
	$(PYTEST) -m "not slow and not browser"

lint: $(VENV)/.ready
	$(BIN)/ruff check .

$(VENV)/.ready: requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

# The browser tests drive a Chromium of the system; on Debian and Ubuntu it is installed when it is missing.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	  || { command -v apt-get >/dev/null && SUDO=$$( [ "$$(id -u)" = 0 ] || echo sudo ) \
	       && $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq chromium >/dev/null; } \
	  || echo "No Chromium found and none could be installed: the browser tests will fail. Install chromium and run again."

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache
