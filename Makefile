# SPDX-License-Identifier: Apache-2.0
# The front door.  Meson and Ninja do the work; this file calls them.
#
#     make            build; everything runnable lies in build/bin/
#     make demo       end-to-end example                    (installs missing packages first)
#     make test       all tests; last line: N passed, N failed (installs missing packages first); the goldens run a
#                     second time under the address and undefined-behaviour sanitizers
#     make check      all tests under these sanitizers, with every fault and many random runs, after a build with clang
#                     that allows no warning and static analysis (tools/analyze.sh); what starts threads under the
#                     thread sanitizer
#     make check-capture  orrery capture under a real PyTorch: of python3, or of a Debian 13 in a chroot
#     make python     the Python package: a wheel, installed into BUILD/python-venv, where its tests run
#     make bench      the benchmarks
#     make truth      published measurements against predictions: prints errors, writes docs/truth.md
#     make validate   measured collectives and published training steps against predictions: prints errors and
#                     targets, writes docs/validation.md, fails when a target is missed
#     make fit-nccl   fits the constants of collectives to truth/collectives again (minutes)
#     make docs       the pictures in docs/pictures, from reports made now (needs chromium and Node.js)
#     make fuzz       each fuzz target for FUZZ_SECONDS=60
#     make install    PREFIX=/usr/local DESTDIR= OLD_NAMES=libexec: programs under their old names are links in
#                     PREFIX/libexec/orrery, which is in no PATH by default; bin puts them into PREFIX/bin, no leaves
#                     them out
#     make uninstall  removes what make install with the same PREFIX and DESTDIR wrote
#     make format     clang-format all C files
#     make clean
BUILD ?= build
PREFIX ?= /usr/local
OLD_NAMES ?= libexec
FUZZ_SECONDS ?= 60
TESTS ?=

# The report page is tried in a browser; where there is none, its tests say so and count as skipped.
browser-tests = tools/setup.sh browser || echo "no browser: the tests of the report page are skipped"; tests/browser/install.sh $(1)

# Likewise what starts sweeps on clusters: the small ones for make test, all for make check.
launchers = tools/setup.sh $(1) || echo "no $(1): examples of sweeps that need them are skipped"

# Likewise the Python package.
python-tests = { tools/setup.sh python && tools/make_python.sh $(1) >/dev/null; } || echo "no Python package: its tests are skipped"

.PHONY: all demo test check check-capture python bench truth validate fit-nccl docs fuzz install uninstall format clean
.DEFAULT_GOAL := all

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

demo:
	@tools/setup.sh build
	@$(MAKE) --no-print-directory all
	$(BUILD)/bin/orrery demo

# TESTS= picks tests by a part of their names: make test TESTS=cli/help
sanitized = $(if $(TESTS),$(findstring sanitized,$(TESTS)),sanitized)
test:
	@tools/setup.sh build test
	@$(MAKE) --no-print-directory $(BUILD)/with-tests
	@ninja -C $(BUILD) --quiet
	@$(if $(sanitized),$(MAKE) --no-print-directory build-sanitized/build.ninja && ninja -C build-sanitized --quiet cli/bin.stamp)
	@$(call browser-tests,$(BUILD))
	@$(call launchers,launchers)
	@$(call python-tests,$(BUILD))
	@$(if $(sanitized),tools/make_python.sh build-sanitized >/dev/null || true)
	@tests/run --build $(BUILD) $(if $(sanitized),--sanitized build-sanitized) $(TESTS)

check:
	@tools/setup.sh build test clang
	@$(MAKE) --no-print-directory build-clang/build.ninja
	@ninja -C build-clang --quiet
	@tools/analyze.sh
	@$(MAKE) --no-print-directory build-san/build.ninja
	@ninja -C build-san --quiet
	@$(MAKE) --no-print-directory build-tsan/build.ninja
	@ninja -C build-tsan --quiet cli/bin.stamp threaded
	@$(call browser-tests,build-san)
	@$(call launchers,cluster)
	@$(call python-tests,build-san) && tools/make_python.sh build-clang >/dev/null || true
	@tests/run --build build-san --plain build-clang --raced build-tsan --slow 8 --much $(TESTS)

# CAPTURE_TESTS= picks scripts by name; CAPTURE_ROOT= is a system with python3-torch to chroot into.
check-capture: all
	@CAPTURE_ROOT=$(CAPTURE_ROOT) tests/capture/check $(BUILD) $(CAPTURE_TESTS)

python: all
	@tools/setup.sh python
	@tools/make_python.sh $(BUILD)
	@echo "try it: $(BUILD)/python-venv/bin/python -c 'import orrery'"

bench: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet
	@bench/run $(BUILD)

truth: all
	@truth/truth.py --build $(BUILD) --write docs/truth.md --check $(TRUTH)

validate: all
	@truth/collectives/validate.py --build $(BUILD) --write docs/validation.md --check

fit-nccl: all
	@tools/fit_nccl.py --build $(BUILD)

docs:
	@tools/setup.sh build docs
	@$(MAKE) --no-print-directory all
	@tests/browser/install.sh $(BUILD)
	@PATH="$(abspath $(BUILD))/bin:$$PATH" ORR_BUILD=$(abspath $(BUILD)) node tests/browser/make_pictures.mjs docs/pictures
	@PATH="$(abspath $(BUILD))/bin:$$PATH" tools/compare_picture.sh docs/pictures/packet_compare.svg >/dev/null

fuzz:
	@tools/setup.sh build fuzz
	@$(MAKE) --no-print-directory build-fuzz/build.ninja
	@ninja -C build-fuzz --quiet
	@tests/fuzz/run build-fuzz $(FUZZ_SECONDS)

install: all
	@meson configure $(BUILD) -Dprefix=$(PREFIX) -Dold_names=$(patsubst yes,bin,$(patsubst no,none,$(OLD_NAMES)))
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --quiet --strip
	@find $(DESTDIR)$(PREFIX)/lib* -name liborrery.a -exec strip --strip-debug {} +

uninstall: $(BUILD)/build.ninja
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	@ninja -C $(BUILD) --quiet cli/orrery_tables >/dev/null
	@tools/uninstall.py $(BUILD) $(DESTDIR)

format:
	@tools/check_format.sh --fix

clean:
	rm -rf $(BUILD) build-san build-sanitized build-clang build-tsan build-fuzz

$(BUILD)/build.ninja:
	@tools/setup.sh --dry-run build
	@meson setup $(BUILD) -Dhardened=true -Db_pie=true >/dev/null || { cat $(BUILD)/meson-logs/meson-log.txt; exit 1; }

# A tree configured before cmocka was there must look again, once.
$(BUILD)/with-tests: | $(BUILD)/build.ninja
	@meson configure $(BUILD) -Dtests=enabled
	@touch $@

build-san/build.ninja:
	@meson setup build-san -Dtests=enabled -Doptimization=1 -Db_ndebug=false \
	    -Db_sanitize=address,undefined -Db_lundef=false >/dev/null

# Only the program and its library, for the group "sanitized" of the tests.
build-sanitized/build.ninja:
	@meson setup build-sanitized -Dtests=disabled -Doptimization=1 -Db_ndebug=false \
	    -Db_sanitize=address,undefined -Db_lundef=false >/dev/null

build-clang/build.ninja:
	@CC=clang-14 CXX=clang++-14 meson setup build-clang -Dtests=disabled -Dwerror=true -Doptimization=0 >/dev/null

# Only what the group "threads" of the tests runs.  Packets use threads for windows of any size.
build-tsan/build.ninja:
	@meson setup build-tsan -Dtests=enabled -Doptimization=1 -Db_ndebug=false -Db_sanitize=thread -Db_lundef=false \
	    -Dc_args=-DFAB_EVENTS_THAT_PAY=1 >/dev/null

build-fuzz/build.ninja:
	@CC=clang-14 CXX=clang++-14 meson setup build-fuzz -Dfuzz=true -Dtests=disabled -Doptimization=2 \
	    -Db_ndebug=false -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
