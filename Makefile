# make demo   install what is missing, build, train the demo recipe, show what overlap hides
# make test   build and run the tests (release): of what is drawn or exhaustive a part
# make asan, make tsan   the same tests under the sanitizers
# make bench  speed: one step against the machine's ceiling and against PyTorch
# make soak   long runs: all that is drawn or exhaustive, fuzzers, races, every recipe, every file compiled alone,
#             the first two commands on a bare Debian
# make install   install the program, recipes, completions and manual page (PREFIX=/usr/local, DESTDIR)
# make package   a Debian package in build/package, for any processor of this kind
# make help   this list, as make alone prints it
# make format, make clean

SHELL := /bin/bash
weft := build/release/bin/weft
# One rank a core, as far as the demo's batch divides.
ranks := $(shell n=$$(nproc); if [ $$n -ge 4 ]; then echo 4; elif [ $$n -ge 2 ]; then echo 2; else echo 1; fi)

.PHONY: help demo test asan tsan debug dev bench soak setup install package format clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# //p; /^$$/q' Makefile

setup:
	@tools/setup.sh

# $(1): preset, $(2): more for the build. Configures once; ninja configures again when it must. A compiler takes up to
# 2 GB, so there is one a core.
define build
@test -f build/$(1)/build.ninja || cmake --preset $(1) > build-$(1).log 2>&1 || { cat build-$(1).log; exit 1; }
@rm -f build-$(1).log
@cmake --build --preset $(1) -j $$(nproc) $(2)
endef

demo: setup
	$(call build,release,--target weft)
	@$(weft) train tiny world=$(ranks) model.expert_model_parallel_size=$(ranks) runtime.trace=true
	@echo; echo "The same steps in three orders, on emulated links (weft bench overlap):"
	@$(weft) bench overlap --rounds 1 --shares=1

test: setup
	$(call build,release)
	@ctest --preset release -LE ci -j $$(( $$(nproc) + 1 ))
	@sed -n 's/^\[  SKIPPED \] \([0-9]*\) tests*, .*/\1/p' build/release/Testing/Temporary/LastTest.log | \
	  awk '{ n += $$1 } END { if (n) print n " tests were skipped, most of them for want of a GPU (weft doctor says what is missing)" }'

asan tsan debug dev: setup
	$(call build,$@,--target all ci)
	@ctest --preset $@

bench: setup
	@tools/setup.sh peers
	$(call build,release,--target all kernels_bench clock_bench)
	@$(weft) bench step cpu_small --peer
	@for mode in ep dp tp pp cp; do $(weft) bench overlap --mode=$$mode || failed=yes; done; [ -z "$$failed" ]
	@$(weft) bench overlap --mode=pp world=4 pp=4 vpp=1 gbs=8 model.num_layers=8
	@$(weft) bench schedule
	@$(weft) bench check
	@$(weft) bench plan
	@build/release/bin/kernels_bench
	@$(weft) bench dispatch

soak: setup
	$(call build,dev,--target all ci kernels_bench clock_bench)
	$(call build,release,--target all ci)
	@tests/fuzz/run.sh 120 || [ $$? -eq 77 ]
	@ctest --preset release --repeat until-fail:20 -R '^(tensor|comm|comm_mpi|exec|train|train_layouts)$$'
	@for test in build/release/bin/*_test; do WEFT_SOAK=1 WEFT_RANDOM_SEED=$$(date +%s) $$test --gtest_brief=1 || exit 1; done
	@tools/plant_faults.sh build/dev
	@$(weft) recipes --start
	@tests/setup/run.sh || [ $$? -eq 77 ]

PREFIX ?= /usr/local
install: setup
	$(call build,release,--target installed)
	@cmake --install build/release --prefix $(PREFIX)

package: setup
	$(call build,package,--target installed)
	@cd build/package && cpack -G DEB

format:
	@git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format -i

clean:
	@rm -rf build
