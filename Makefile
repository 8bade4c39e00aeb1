# SPDX-License-Identifier: Apache-2.0
# `make lab` and `make test` are all a fresh Debian 12 or 13 needs. Bare `make` lists the targets.
.DELETE_ON_ERROR:
.PHONY: help setup setup-test setup-lab lab vm-lab test check lint-playbooks unit decision fuzz guest browser kernels atlas nightly validate planted bench docs clean

PROFILE ?= profiles/long-fat-400mbit-240ms.yaml
LAB ?= playbooks/labs/virtual.yaml
LAB_PROFILE ?= lab-5mbit
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= $(shell nproc)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what a run needs: apt packages and a Python environment in .venv
	@sh setup/packages.sh howdah/engine/prerequisites.txt
	@sh setup/environment.sh $(VENV) .

setup-test: setup ## the same, and what the tests need besides
	@sh setup/packages.sh setup/packages-test.txt
	@sh setup/environment.sh $(VENV) '.[dev,lab]'

lab: setup ## build the kernel and the guest tree once, run PROFILE, report it
	@$(BIN)/howdah run '$(PROFILE)'

setup-lab: setup ## what a lab of virtual machines needs besides
	@sh setup/packages.sh setup/packages-lab.txt
	@sh setup/environment.sh $(VENV) '.[lab]'

vm-lab: setup-lab ## boot virtual machines, set them up, run LAB_PROFILE across them, take them down
	@$(BIN)/howdah lab run '$(LAB)' '$(LAB_PROFILE)'

test: setup-test check ## every test, on a real kernel
	@$(BIN)/howdah build
	$(BIN)/pytest -n $(JOBS) --dist loadfile

check: lint-playbooks ## linters and type checker, and generated files against their source
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-playbooks: ## ansible-lint at its production profile
	cd playbooks && PATH="$(CURDIR)/$(BIN):$$PATH" ansible-lint -q --nocolor

unit: ## tests that need no kernel and no browser
	$(BIN)/pytest -n $(JOBS) tests/unit tests/golden

decision: ## the algorithms' decisions in user space, with sanitizers and a short run of the fuzzer
	$(BIN)/pytest -n $(JOBS) tests/decision

fuzz: ## a minute of the fuzzer for every algorithm
	$(BIN)/python -m tests.decision.fuzz --seconds 60

guest: ## tests that boot a virtual-time kernel
	$(BIN)/pytest -n $(JOBS) --dist loadfile tests/guest

browser: ## tests that click through a report
	$(BIN)/pytest tests/browser

kernels: setup-test ## build modules/ for every kernel of modules/kernels.txt, load them into each, print a table
	@$(BIN)/python -m tests.guest.kernel_matrix

atlas: setup ## run and judge every published experiment and write the site; QUICK=1 for a part of it
	@$(BIN)/howdah atlas $(if $(QUICK),--quick) || [ $$? -eq 6 ]  # a claim that fails is a result

nightly: setup ## run a suite (SUITE=…) and compare it with its baseline; ends with an error on a regression
	@$(BIN)/howdah nightly $(SUITE)

validate: setup ## run the same plans on the user-mode and the stock kernel and compare them; minutes
	@$(BIN)/howdah validate

planted: setup-test ## plant a regression in a kernel tree and let howdah bisect find it; minutes
	@$(BIN)/python -m tests.guest.planted

bench: setup-test ## measure speed and memory; figures go to docs/performance.md by hand
	@$(BIN)/python -m tests.bench

docs: ## write the generated references again
	$(BIN)/python -m howdah.profile.reference

clean: ## remove leftovers of interrupted runs
	@$(BIN)/howdah clean
