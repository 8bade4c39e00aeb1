# SPDX-License-Identifier: Apache-2.0
# `make lab` and `make test` are all a fresh Debian 12 or 13 needs. Bare `make` lists the targets.
.DELETE_ON_ERROR:
.PHONY: help setup setup-test setup-machines lab machines test build bundle check lint lint-playbooks lint-workflows types unit decision fuzz guest browser kernels atlas nightly validate planted planted-faults advnet samplers gaps breaks bench bench-before bench-tree faults attack mutants prose docs references figures screenshots clean

PROFILE ?= profiles/long-fat-400mbit-240ms.yaml
MACHINES ?= playbooks/machines/virtual.yaml
MACHINES_PROFILE ?= machines-5mbit
VENV := .venv
BIN := $(VENV)/bin
# One more than there are cores: tests wait for guests, browsers and disks, too.
JOBS ?= $(shell expr $$(nproc) + 1)
# uv compiles nothing when it installs. A program that may keep no bytecode compiles all it imports each time it starts,
# which doubles the time of a test that runs one.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what a run needs: apt packages and a Python environment in .venv
	@sh setup/packages.sh howdah/engine/prerequisites.txt
	@sh setup/environment.sh $(VENV) '.[figures]'

setup-test: ## the same, and what the tests need besides
	@sh setup/packages.sh howdah/engine/prerequisites.txt setup/packages-test.txt
	@sh setup/environment.sh $(VENV) '.[dev,machines]'

lab: setup ## build the kernel and the guest tree once, run PROFILE, report it
	@$(BIN)/howdah run '$(PROFILE)'

setup-machines: setup ## what virtual machines need besides
	@sh setup/packages.sh setup/packages-machines.txt
	@sh setup/environment.sh $(VENV) '.[machines]'

machines: setup-machines ## boot virtual machines, set them up, run MACHINES_PROFILE across them, take them down
	@$(BIN)/howdah machines run '$(MACHINES)' '$(MACHINES_PROFILE)'

# Linters use one core each, and a build that finds all in the cache none: they run side by side.
test: setup-test ## every test, on a real kernel
	@$(MAKE) --no-print-directory --jobs=3 check build
	$(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --record-durations=var/bench/tests.json

build: ## build the default kernel, the guest tree and the modules, or find them in the cache
	@$(BIN)/howdah build

bundle: ## what a run needs as the wheel howdah-guest, in dist/: machines with it compile nothing
	rm -rf guest/src/howdah_guest/bundle
	mkdir guest/src/howdah_guest/bundle
	$(BIN)/howdah bundle --output guest/src/howdah_guest/bundle
	cd guest && '$(CURDIR)/$(BIN)/python' -m hatchling build -t wheel -d '$(CURDIR)/dist'

check: lint lint-playbooks lint-workflows types prose ## linters of code and prose, and the type checker

lint: ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# In the cache, where every clone finds what another has checked: the paths in it are relative.
types: export MYPY_CACHE_DIR := $(or $(HOWDAH_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/howdah)/mypy
types: ## mypy
	$(BIN)/mypy

prose: ## the English of pages and messages: proselint and the rules of tests/prose
	$(BIN)/python -m tests.prose

# A collection that is installed tells ansible-lint of its modules.
COLLECTIONS = $(wildcard $(addsuffix /*/*/MANIFEST.json,$(addsuffix /collections/ansible_collections,~/.ansible /usr/share/ansible)))
lint-playbooks: ## ansible-lint at its production profile
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.remembered ansible-lint playbooks $(COLLECTIONS) -- env -C playbooks ansible-lint -q --nocolor

lint-workflows: ## what GitHub reads, and CITATION.cff, by their published schemas
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml docs/examples/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

unit: ## tests that need no kernel and no browser
	$(BIN)/pytest -n $(JOBS) tests/unit tests/golden

decision: ## the algorithms' decisions in user space, with sanitizers and a short run of the fuzzer
	$(BIN)/pytest -n $(JOBS) tests/decision

fuzz: ## a minute of the fuzzer for every algorithm
	$(BIN)/python -m tests.decision.fuzz --seconds 60

guest: ## tests that boot a virtual-time kernel
	$(BIN)/pytest -n $(JOBS) --dist loadfile tests/guest tests/field

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

planted-faults: setup-test ## plant ten faults in algorithms and let howdah search find them; half an hour
	@$(BIN)/python -m tests.guest.planted_faults

advnet: setup-test ## search within AdvNet's bounds and compare with its logs; hours
	@$(BIN)/python -m tests.bench.advnet

samplers: setup-test ## which sampler of a search finds most for as many candidates; an hour
	@$(BIN)/python -m tests.bench.samplers

gaps: setup-test ## by how much each control of the kernel can do worse than each other one; a night
	@$(BIN)/python -m tests.bench.gaps

breaks: setup-test ## the smallest path on which each start-up breaks; half an hour
	@$(BIN)/python -m tests.bench.breaks

bench: setup-test ## measure speed and memory; figures go to docs/performance.md by hand
	@$(BIN)/python -m tests.bench

bench-before: setup-test ## time finished runs and reruns of this tree and of an older one in turns (BEFORE=COMMIT)
	@$(BIN)/python -m tests.bench --before $(BEFORE)

bench-tree: setup-test ## edit a kernel tree and time the run that follows; minutes
	@$(BIN)/python -m tests.bench --kernel-tree

faults: setup-test ## mutated inputs, random kills, disks that give out: what goes wrong; hours (FAULTS='--kills 100' for less)
	@$(BIN)/python -m tests.faults $(FAULTS)

attack: setup-test ## hostile packs, directories, profiles, raw files and recordings, and kills: what gets through; hours (ATTACK='--packs 20' for less)
	@nice -n 15 $(BIN)/python -m tests.faults --inputs 20000 --records 0 --disks 0 --raw 2000 --recordings 4000 --texts 2000 --packs 200 --directories 100 --blocks 100 --surroundings 1000 --pairs 200 --kills 1000 $(ATTACK)

mutants: setup-test ## a sample of mutants and the share that tests notice; half an hour (MUTANTS='--sample 100 --seed 2')
	@sh setup/environment.sh $(VENV) '.[dev,machines,mutation]'
	@nice -n 15 $(BIN)/python -m tests.mutants $(MUTANTS)

docs: ## build the documentation's site in var/site, and check its links
	@sh setup/environment.sh $(VENV) '.[docs]'
	$(BIN)/python -m tests.docs_site var/site-source
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo 'site: var/site/index.html'

references: ## write the references that are made from the code again
	$(BIN)/python -m howdah.profile.reference
	$(BIN)/python -m howdah.nightly.suite
	$(BIN)/python -m howdah.work.catalogue
	$(BIN)/python -m howdah.command.manual
	$(BIN)/python -m howdah.measure.reference
	$(BIN)/python -m howdah.plan.reference
	$(BIN)/python -m howdah.report.paper.reference
	$(BIN)/python -m howdah.record.reference
	$(BIN)/python -m howdah.command.shapes
	$(BIN)/python -m howdah.atlas.summary
	$(BIN)/python -m tests.liars.trust

FIGURES := var/figures/long-fat-400mbit-240ms
figures: setup-test ## run the README's experiment and write its table, the measures behind it, and its picture
	@$(BIN)/howdah run profiles/long-fat-400mbit-240ms.yaml --runs var/figures
	@$(BIN)/howdah clean --unlisted --runs var/figures # runs of an earlier version, which the patterns below would find
	$(BIN)/python -m tests.readme $(FIGURES)
	$(BIN)/howdah compare $(FIGURES)/cubic-r0-* $(FIGURES)/cubic-no-hystart-r0-* --output var/figures/start-up.html
	$(BIN)/python -m tests.browser.picture var/figures/start-up.html docs/figures/start-up.png

screenshots: setup-test ## take the small pictures again with which the tests compare each kind of page
	$(BIN)/python -m tests.browser.screenshot

clean: ## remove leftovers of interrupted runs
	@$(BIN)/howdah clean
