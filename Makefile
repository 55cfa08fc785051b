# Heterotrain: one makefile, not recursive. `make help` lists the targets.
#
#   SAN=1   build under AddressSanitizer and UndefinedBehaviorSanitizer, in build/san
#   CC=...  compiler (gcc 12 and clang 14 are tested)
#   V=1     show the commands

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
SHELL := /bin/bash

# ---- modules: a folder is a room, a line lists its modules ----
# Rooms and modules stand in order: each may include only headers of those before it, and no
# algorithm may include another (make rooms).
modules = $(foreach room,$(1),$(addprefix $(room)/,$($(room))))
planner/base            := vendor error arena random logarithm memo simplex text_writer
planner/model           := hardware instance_type network cluster workload profile estimate unused_gpus plan \
                           vendor_group runtime
planner/cost            := memory transfer link_sharing cost timeline schedule bound_program bound infeasible \
                           idle_gpus migrate
planner/search          := balance stage_times shortlist preference search
planner/algo            := megatron amp exhaustive
planner/algo/metis      := device_group pipeline_draft proportional_split paper_walk metis_search metis oomfirst
planner/algo/ditto      := pipeline_template equal_gpus ditto
planner/algo/autohet    := pipeline_grouping autohet
planner/algo/optimal    := node_class layer_front batch_share pipeline_shape shape_catalog shape_neighbour shape_count \
                           build_plan local_search optimal
planner/algo/repair     := surviving_plan repair
planner/run             := run_all explain
planner/render/runtime  := torchrun runtime_files rank_grid megatron flagscale sailor deepspeed torchtitan
planner/render/people   := table explanation timeline
planner/format          := json yaml_read yaml_write kubernetes_node network_json
planner/format/profile  := megatron_log sailor metis config model timers object
planner/format/document := read_file hardware_json cluster_json profile_json workload_json unused_json \
                           prediction_json plan_json question render_json answer_text
planner                 := hetplan system_call_filter shell_completion modules
planner/cli             := options question_document command cmd_plan cmd_judge cmd_simulate cmd_diff cmd_explain \
                           cmd_compare cmd_render cmd_profile main
# What knows libc and libm only; then files and formats (jansson, libyaml, OpenSSL).
PLANNER_CORE_ROOMS := planner/base planner/model planner/cost planner/search planner/algo planner/algo/metis \
                      planner/algo/ditto planner/algo/autohet planner/algo/optimal planner/algo/repair planner/run \
                      planner/render/runtime planner/render/people
PLANNER_ROOMS := $(PLANNER_CORE_ROOMS) planner/format planner/format/profile planner/format/document planner \
                                       planner/cli
PLANNER       := $(call modules,$(PLANNER_ROOMS))
PLANNER_CORE  := $(call modules,$(PLANNER_CORE_ROOMS))

controller/base                := process timestamp digest quantity strmap json_scan object object_store log metrics workqueue
controller/job                 := pod_security pod_schema settings tenancy input_change node_selector failure_policy job_spec
controller/cluster             := hardware_map plan_object pod_need node_state kept_fields capacity_table capacity \
                                  capacity_view precedence kueue_quota measurement
controller/decision            := replan_rule other_jobs snapshot children status decision pass
controller/placement           := victims fit resharding candidate drain generation what_if demand preemption \
                                  planning
controller/reconcile           := lifecycle heartbeat restart kueue_admission gang replan profiling reconcile
controller/kube                := transport http auth decode client watch lease
controller/operator            := apply planner_child checkpoint_hook kueue_watches unreadable_jobs gauges \
                                  dashboard_plan dashboard_data loop
controller/serve               := published tls server endpoints dashboard certificate certificate_bundle \
                                  admission_verdict questions admission_route authorization check_command
controller/record              := snapshot_json record_file replay_command
controller/kubectl             := preview text_table options kubectl_transport host blocking_client session \
                                  planner_question plan_commands history_command status_command change_commands \
                                  completion commands main
controller                     := main
controller/simulate/api_server := condition refusal selector merge kinds storage verbs route api_server
controller/simulate            := scheduler batch_jobs scenario simulated_cluster client_link simulation narration \
                                  live_dashboard simulate_command main
CONTROLLER_ROOMS := controller/base controller/job controller/cluster controller/decision controller/placement \
                    controller/reconcile controller/kube controller/operator controller/serve controller/record \
                    controller/kubectl controller
# After the operator, which therefore cannot include it, and in a library that it is not linked with.
SIMULATE_ROOMS  := controller/simulate/api_server controller/simulate
CONTROLLER      := $(call modules,$(CONTROLLER_ROOMS))
SIMULATE        := $(call modules,$(SIMULATE_ROOMS))
# What decides knows no network, clock or disk.
CONTROLLER_PURE := $(call modules,controller/job controller/cluster controller/decision controller/placement \
                                  controller/reconcile) \
                   $(addprefix controller/,base/timestamp base/digest base/quantity base/strmap base/json_scan \
                                           base/object base/object_store operator/dashboard_plan \
                                           operator/dashboard_data serve/admission_verdict record/snapshot_json)

# ---- tools and flags ----
comma    := ,
CC       ?= gcc
AR       ?= ar
PKGS     := jansson libcurl libcrypto yaml-0.1
B        := build$(if $(SAN),/san)
VERSION  := $(shell sed -n 's/^\#define HET_VERSION "\(.*\)"/\1/p' planner/hetplan.h)
CSTD     := -std=gnu17 -D_GNU_SOURCE
WARN     := -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wvla -Wformat=2 -Wundef -Wcast-qual \
            -Wimplicit-fallthrough -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
HARDEN   := -fstack-protector-strong -fstack-clash-protection -fno-strict-overflow -fno-delete-null-pointer-checks \
            -fPIE -ffp-contract=off
OPT      := $(if $(SAN),-O1 -fno-omit-frame-pointer -fsanitize=address$(comma)undefined$(comma)float-cast-overflow -fno-sanitize-recover=all,-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
CFLAGS   ?= -g
ALL_CFLAGS = $(CSTD) $(OPT) $(WARN) $(HARDEN) $(shell pkg-config --cflags $(PKGS)) -I. $(CFLAGS)
LDFLAGS_ALL = $(if $(SAN),-fsanitize=address$(comma)undefined) -pie -Wl,-z,relro,-z,now,-z,noexecstack,--as-needed $(LDFLAGS)
# Programs without shared libraries; sanitizers want theirs.
LDFLAGS_STATIC = $(if $(SAN),$(LDFLAGS_ALL),-static-pie $(filter-out -pie,$(LDFLAGS_ALL)))
PLANNER_LIBS    = $(shell pkg-config --libs jansson libcrypto yaml-0.1) -lm
CONTROLLER_LIBS = $(PLANNER_LIBS) $(shell pkg-config --libs libcurl libwebsockets libssl) -lpthread
Q        := $(if $(V),,@)

present = $(wildcard $(addsuffix .c,$(1)))
PLANNER_SRC    := $(call present,$(filter-out planner/cli/%,$(PLANNER)))
HETPLAN_SRC    := $(call present,$(call modules,planner/cli))
CONTROLLER_SRC := $(call present,$(filter-out controller/main controller/kubectl/main,$(CONTROLLER)))
SIMULATE_SRC   := $(call present,$(filter-out controller/simulate/main,$(SIMULATE)))
# Tests lie as the sources do; every test_x.c there defines `Suite *test_x_suite(void)`.
TEST_FOLDERS   := tests/planner tests/controller
TEST_SRC       := $(sort $(shell find $(TEST_FOLDERS) -name 'test_*.c'))
TEST_HELP_SRC  := $(sort $(shell find $(TEST_FOLDERS) -name '*.c' ! -name 'test_*'))
TEST_SUITES    := $(patsubst test_%.c,%,$(notdir $(TEST_SRC)))
obj = $(patsubst %.c,$(B)/%.o,$(1))
# Each needs only those after it.
LIBRARIES      := $(B)/libsimulate.a $(B)/libcontroller.a $(B)/libplanner.a

.PHONY: all library help unit sim check test test-rest test-all test-programs demo runtime fresh e2e run-e2e fuzz fuzz-targets bench bench-cluster rooms lint fmt golden cover clean install uninstall list-installed run-library packages image manifests chart run-chart run-dashboard run-training show
help: ## this list
	@echo "make [SAN=1] [V=1] [CC=clang] TARGET"
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' Makefile
PROGRAMS := hetplan heterotrain-controller heterotrain-simulate kubectl-htj
all: $(PROGRAMS:%=$(B)/%) $(B)/kubectl_complete-htj ## build the programs, in build/

$(B)/%.o: %.c
	@mkdir -p $(dir $@)
	$(if $(Q),@echo "  CC    $<")
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
# The planner's objects are also the library's, which shows nothing but HET_API.
$(call obj,$(PLANNER_SRC)): ALL_CFLAGS += -fPIC -fvisibility=hidden
$(B)/libplanner.a: $(call obj,$(PLANNER_SRC))
	@rm -f $@; $(AR) rcD $@ $^
$(B)/libcontroller.a: $(call obj,$(CONTROLLER_SRC))
	@rm -f $@; $(AR) rcD $@ $^
$(B)/libsimulate.a: $(call obj,$(SIMULATE_SRC))
	@rm -f $@; $(AR) rcD $@ $^
# Static: the planner is started where it can open no library (planner/system_call_filter.h).
$(B)/hetplan: $(call obj,$(HETPLAN_SRC)) $(B)/libplanner.a
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_STATIC) -o $@ $^ $(PLANNER_LIBS)
$(B)/heterotrain-controller: $(call obj,controller/main.c) $(B)/libcontroller.a $(B)/libplanner.a
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(CONTROLLER_LIBS)
$(B)/heterotrain-simulate: $(call obj,controller/simulate/main.c) $(LIBRARIES)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(CONTROLLER_LIBS)
# One file that runs anywhere.
$(B)/kubectl-htj: $(call obj,controller/kubectl/main.c) $(B)/libcontroller.a $(B)/libplanner.a
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_STATIC) -o $@ $^ $(PLANNER_LIBS)
$(B)/kubectl_complete-htj: $(B)/kubectl-htj
	@ln -sf kubectl-htj $@

# ---- the library ----
# One object: planner/hetplan.c, what it needs of the planner, of jansson and libyaml, whose
# memory is then the planner's (planner/base/arena.h), and SHA-256 of libcrypto. What it
# defines is local to it but for the names in planner/hetplan.symbols. Their archives are
# made for programs: of what these may use and a shared library may not, there is `stdin`,
# in a function that is not called.
SONAME := libhetplan.so.$(firstword $(subst ., ,$(VERSION)))
SHARED := libhetplan.so.$(VERSION)
archive = $(shell $(CC) -print-file-name=lib$(1).a)
library: $(B)/library/libhetplan.a $(B)/library/$(SHARED) ## the library, static and shared, in build/library
$(B)/library/own-%.a:
	@mkdir -p $(dir $@)
	$(Q)objcopy $(foreach f,malloc calloc realloc free strdup,--redefine-sym $(f)=x$(f)) $(call archive,$*) $@
$(B)/library/hetplan.o: $(B)/planner/hetplan.o $(B)/libplanner.a $(B)/library/own-jansson.a $(B)/library/own-yaml.a planner/hetplan.symbols
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) -r -nostdlib -Wl,-d,--defsym=stdin=0 -o $@.all $(filter %.o %.a,$^) $(call archive,crypto)
	$(Q)objcopy --keep-global-symbols=planner/hetplan.symbols $@.all $@
	@rm $@.all
$(B)/library/libhetplan.a: $(B)/library/hetplan.o
	@rm -f $@; $(AR) rcD $@ $^
$(B)/library/$(SHARED): $(B)/library/hetplan.o
	@(echo "HETPLAN_0 { global:"; sed 's/$$/;/' planner/hetplan.symbols; echo "local: *; };") >$(B)/library/hetplan.map
	$(Q)$(CC) -shared $(filter-out -pie,$(LDFLAGS_ALL)) $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -Wl,-soname,$(SONAME) \
	    -Wl,--version-script=$(B)/library/hetplan.map -o $@ $< -lm
	@ln -sf $(SHARED) $(B)/library/$(SONAME)
	@ln -sf $(SONAME) $(B)/library/libhetplan.so

# The dashboard's page is part of the program.
$(B)/controller/serve/dashboard/page.inc: controller/serve/dashboard/page.html
	@mkdir -p $(dir $@)
	@od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g' > $@
$(B)/controller/serve/dashboard.o: $(B)/controller/serve/dashboard/page.inc
$(B)/controller/serve/dashboard.o: ALL_CFLAGS += -I$(B)/controller/serve

$(B)/controller/main.o: ALL_CFLAGS += -DHETEROTRAIN_VERSION='"$(VERSION)"'

# ---- tests ----
$(B)/tests/suites.inc: FORCE
	@mkdir -p $(dir $@)
	@for s in $(TEST_SUITES); do echo "SUITE($$s)"; done > $@.new
	@cmp -s $@ $@.new && rm $@.new || mv $@.new $@
FORCE:
$(B)/tests/main.o: $(B)/tests/suites.inc
$(B)/tests/main.o: ALL_CFLAGS += -I$(B)/tests
$(call obj,$(TEST_SRC) $(TEST_HELP_SRC) tests/main.c tests/sim.c): ALL_CFLAGS += $(shell pkg-config --cflags check) -Wno-conversion -Wno-sign-conversion -Wno-missing-prototypes -Wno-unused-variable -Wno-format-nonliteral
$(B)/run-tests: $(call obj,tests/main.c $(TEST_SRC) $(TEST_HELP_SRC) planner/cli/options.c) $(LIBRARIES)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(shell pkg-config --libs check libssl) $(CONTROLLER_LIBS)

# What a planner could do that a question has taken over (test_planner_child.c).
$(B)/hostile-planner: $(call obj,tests/hostile_planner.c)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_STATIC) -o $@ $^

# Every suite runs here; `make unit T="cost memory"` runs those named.
# Simulations run the plain planner, if it is built: it has its own suites under sanitizers.
unit: all $(B)/run-tests $(B)/hostile-planner ## unit tests and simulation, once (T=suite)
	@HETPLAN=$(abspath $(B)/hetplan) CONTROLLER=$(abspath $(B)/heterotrain-controller) \
	    HOSTILE_PLANNER=$(abspath $(B)/hostile-planner) \
	    SIMULATION_HETPLAN=$(abspath $(firstword $(wildcard build/hetplan) $(B)/hetplan)) \
	    tests/run-all "unit=$(B)/run-tests -j $(shell nproc) $(T)"

# Random lives of a cluster, each under all invariants: `make sim SEEDS=1-2000`;
# `make sim SEED=17` lives one again and shows all that happens.
$(B)/sim: $(call obj,tests/sim.c $(TEST_HELP_SRC)) $(LIBRARIES)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(shell pkg-config --libs check libssl) $(CONTROLLER_LIBS)
SEEDS ?= 1-2000
sim: $(B)/sim ## random simulation (SEEDS=1-2000; SEED=n: that one, with all that happens)
	@$(if $(SEED),$(B)/sim --trace $(SEED),tests/run-all "simulated=$(B)/sim --each -j $(shell nproc) $(SEEDS)")

# What parts of the tests build that run beside each other.
test-programs: all $(B)/run-tests $(B)/hostile-planner $(B)/sim $(B)/fakelet
check: ## the fast part: unit tests and scenarios, and 50 seeds of the random simulation
	@QUICK=1 SEEDS=1-50 tests/run-all unit simulated

# PARTS="unit e2e": some of them; CASES="webhook ttl": some of the cases.
test: packages ## all layers: unit tests, 200 seeds, the telling cases on the real control plane
	@SEEDS=1-200 CASES="$(or $(CASES),telling)" tests/run-all $(or $(PARTS),unit library simulated runtime dashboard e2e training chart)
test-rest: ## what `make test` leaves out: sanitizers, 1,800 seeds, fuzz, all other cases, an empty Debian
	@deploy/apt-packages build test lint
	@SEEDS=201-2000 CASES="$(or $(CASES),rest)" tests/run-all $(or $(PARTS),sanitized simulated runtime fuzz fresh e2e chart training oldest)
test-all: ## everything: both of them in one run
	@deploy/apt-packages build test lint
	@tests/run-all $(or $(PARTS),unit library simulated runtime dashboard sanitized fuzz fresh e2e chart training oldest)

runtime: $(B)/hetplan ## the training program and the profiler, deploy/runtime (T=words)
	@tests/run-all "runtime=tests/runtime/run $(T)"

fresh: packages ## what a newcomer does, in an empty Debian (T=steps); needs root
	@tests/run-all "fresh=tests/fresh/run $(T)"

e2e: packages ## the cases on a real control plane, those of the chart and of training among them; the dashboard
	@tests/run-all e2e training chart dashboard

$(B)/fakelet: $(call obj,tests/e2e/fakelet.c) $(B)/libcontroller.a $(B)/libplanner.a
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(CONTROLLER_LIBS)
run-e2e: all $(B)/fakelet
	@tests/e2e/fetch-control-plane >/dev/null
	@tests/e2e/fetch-kueue >/dev/null
	@IN_IMAGE=$${IN_IMAGE-$$([ $$(id -u) -ne 0 ] || echo 1)} tests/run-all "e2e=tests/e2e/run $(T)"

# Real torchrun in the controller's pods.
run-training: all $(B)/fakelet
	@tests/runtime/fetch-torch >/dev/null
	@tests/run-all "training=tests/e2e/training $(T)"

# The library as programs outside the tree use it.
run-library: all library
	@tests/run-all "library=tests/library/run $(B) $(T)"

# The page in headless Chromium; screenshots in build/dashboard.
run-dashboard: all
	@tests/run-all "dashboard=tests/e2e/dashboard $(B)"

# ---- chart and image ----
image: all ## the controller's image, without Docker: build/image
	@BUILD=$(B) deploy/image $(B)/image
manifests: ## write deploy/*.yaml anew from the chart
	@deploy/manifests
chart: ## package the chart: build/heterotrain-VERSION.tgz
	@mkdir -p $(B)
	@$$(tests/e2e/fetch-helm)/helm package helm/heterotrain --destination $(B)
run-chart: all $(B)/fakelet
	@tests/e2e/fetch-control-plane >/dev/null
	@tests/run-all "chart=tests/e2e/chart $(T)"

# ---- fuzzing ----
# Programs of clang's libFuzzer under both sanitizers, in build/fuzz. One target for longer:
# `make fuzz T=question FUZZ_SECONDS=600`.
FUZZ_TARGETS := $(filter-out fuzz,$(basename $(notdir $(sort $(wildcard tests/fuzz/*.c)))))
FUZZ_SECONDS ?= 10
$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/fuzz.o $(LIBRARIES)
	@mkdir -p $(dir $@)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) -fsanitize=fuzzer $(LDFLAGS_ALL) -o $@ $^ $(CONTROLLER_LIBS)
.SECONDARY: $(patsubst %,$(B)/tests/fuzz/%.o,$(FUZZ_TARGETS))
fuzz-targets: $(patsubst %,$(B)/fuzz/%,$(FUZZ_TARGETS))
fuzz: ## everything that parses, on random input (T=target, FUZZ_SECONDS=10)
	@deploy/apt-packages build test lint
	@$(MAKE) --no-print-directory -s -j$(shell nproc) CC=clang SAN=1 B=build/fuzz \
	    CFLAGS="-g -fsanitize=fuzzer-no-link" fuzz-targets
	@$(MAKE) --no-print-directory -s -j$(shell nproc) build/sim # whose decisions are seeds
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run-all "fuzz=tests/fuzz/run build/fuzz $(or $(T),$(FUZZ_TARGETS))"

# ---- the main job, on a terminal ----
DEMO := $(B)/heterotrain-simulate --hetplan $(B)/hetplan \
        --nodes docs/examples/nodes-mixed.json --profile docs/examples/opt-350-profile.yaml \
        --hardware docs/examples/hardware.json --job docs/examples/opt-350-job.yaml
demo: ## install what is missing, build, and show a job planned, placed and moved
	@deploy/apt-packages build
	@$(MAKE) --no-print-directory -j2 all
	@$(MAKE) --no-print-directory run-demo
run-demo: all
	@$(DEMO) --event "120s delete node/a100-2" --event "600s restore node/a100-2" \
	    --until 1800s
	@echo
	@echo "The same on your own cluster:"
	@echo "  kubectl apply --server-side -f crds/ && kubectl apply -f docs/examples/opt-350-profile.yaml"
	@echo "  $(B)/heterotrain-controller            # uses your kubeconfig"
	@echo "  kubectl apply -f docs/examples/opt-350-job.yaml && kubectl get htj -w"
	@echo "Your own what-if: $(B)/heterotrain-simulate --help"

show: all ## the demo on the dashboard, ten times as fast as life: http://127.0.0.1:8081/
	@$(DEMO) --event "120s delete node/a100-2" --event "600s restore node/a100-2" \
	    --until 1800s --dashboard 127.0.0.1:8081

# ---- figures ----
$(B)/bench-controller: $(call obj,tests/bench/controller.c tests/bench/cluster_objects.c) $(LIBRARIES)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(CONTROLLER_LIBS)
$(B)/bench-load: $(call obj,tests/bench/load.c tests/bench/cluster_objects.c) $(LIBRARIES)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(CONTROLLER_LIBS)
$(B)/bench-serving: $(call obj,tests/bench/serving.c) $(LIBRARIES)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(CONTROLLER_LIBS)
$(B)/bench-measure: $(call obj,tests/bench/measure.c)
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^
$(B)/bench-random: $(call obj,tests/bench/random.c tests/planner/random_problem.c) $(B)/libplanner.a
	$(if $(Q),@echo "  LINK  $@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PLANNER_LIBS)
bench: packages ## planning and re-planning: time, memory, plan quality; writes bench.json
	@$(MAKE) --no-print-directory -s -j2 all $(B)/bench-controller $(B)/bench-load $(B)/bench-measure $(B)/bench-random
	@tests/bench/run $(BENCH_ARGS) $(B)

bench-cluster: packages ## the operator on a real control plane of 1,000 nodes and 100 jobs
	@$(MAKE) --no-print-directory -s -j2 all $(B)/fakelet
	@tests/e2e/fetch-control-plane >/dev/null
	@tests/bench/cluster $(BENCH_ARGS) $(B)

golden: $(B)/hetplan ## write the expectations in tests/golden anew: look at the difference
	@for folder in tests/golden/*/*/; do \
	    for form in json:json table:txt; do \
	        HETPLAN=$(abspath $<) tests/golden/plan $$folder $${form%:*} >$${folder}plan.$${form#*:}; \
	    done; done
	@git status --short tests/golden

# ---- the code itself ----
C_FILES = $(shell git ls-files '*.c' '*.h')
SCRIPTS = deploy/apt-packages deploy/image deploy/manifests deploy/manpage tests/library/run .ci/run tests/fresh/run tests/fresh/steps tests/runtime/run tests/runtime/fetch-torch tests/lint/purity tests/lint/memory tests/golden/plan $(wildcard tests/e2e/run \
          tests/e2e/control-plane tests/e2e/fetch-control-plane tests/e2e/fetch-kueue tests/e2e/fetch-helm tests/e2e/go-programs tests/e2e/chart tests/e2e/training \
          tests/e2e/kueue tests/e2e/crd-cases/run)
fmt: ## lay the code out (.clang-format)
	@clang-format -i $(C_FILES)
rooms: $(call obj,$(call present,$(PLANNER_CORE) $(CONTROLLER_PURE))) ## arrows between rooms and modules; purity
	@awk -v order="$(PLANNER) $(CONTROLLER) $(SIMULATE)" -f tests/lint/rooms.awk \
	    $$(git ls-files 'planner/*.[ch]' 'controller/*.[ch]')
	@tests/lint/purity tests/lint/pure-planner.symbols $(call obj,$(call present,$(PLANNER_CORE)))
	@tests/lint/purity tests/lint/pure-controller.symbols $(call obj,$(call present,$(CONTROLLER_PURE)))
lint: ## formatting, rooms, purity, both compilers with -Werror, cppcheck, scripts, CRDs, docs, chart
	@deploy/apt-packages build test lint
	@clang-format --dry-run -Werror $(C_FILES)
	@$(MAKE) -s B=build/lint/gcc CC=gcc WERROR=-Werror all \
	    build/lint/gcc/run-tests build/lint/gcc/fakelet
	@$(MAKE) -s B=build/lint/clang CC=clang WERROR=-Werror all \
	    build/lint/clang/run-tests build/lint/clang/fakelet
	@$(MAKE) -s B=build/lint/gcc CC=gcc WERROR=-Werror rooms
	@cppcheck -q -j2 --std=c11 -D_GNU_SOURCE -I. "-Djson_object_foreach(o,k,v)=while (next(o,&k,&v))" \
	    "-Djson_array_foreach(a,i,v)=while (next(a,&i,&v))" --enable=warning,performance,portability \
	    --inline-suppr --suppress=missingIncludeSystem --error-exitcode=1 planner controller
	@tests/lint/memory
	@shellcheck $(SCRIPTS)
	@pyflakes3 $$(git ls-files 'deploy/*.py' 'tests/runtime/*.py') tests/lint/packages.py tests/run-all docs/pictures/*.py
	@python3 tests/lint/crd_bounds.py
	@python3 tests/lint/field_tests.py
	@python3 tests/lint/examples.py
	@python3 tests/lint/packages.py
	@python3 docs/pictures/architecture.py --check
	@python3 tests/lint/docs.py build/lint/gcc
	@tests/chart/run build/lint/gcc
	@echo "lint: clean"

# ---- installation ----
# What is installed, below PREFIX: all that `make uninstall` removes.
PREFIX    ?= /usr/local
COMPLETED := hetplan kubectl-htj
BASH_COMPLETIONS := $(COMPLETED:%=share/bash-completion/completions/%)
ZSH_COMPLETIONS  := $(COMPLETED:%=share/zsh/site-functions/_%)
FISH_COMPLETIONS := $(COMPLETED:%=share/fish/vendor_completions.d/%.fish)
MAN_PAGES        := $(PROGRAMS:%=share/man/man1/%.1)
INSTALLED_PROGRAMS := $(PROGRAMS:%=bin/%)
INSTALLED_LIBRARY  := lib/libhetplan.a lib/$(SHARED)
INSTALLED_LINKS    := bin/kubectl_complete-htj lib/$(SONAME) lib/libhetplan.so
INSTALLED := $(INSTALLED_PROGRAMS) $(INSTALLED_LIBRARY) $(INSTALLED_LINKS) include/hetplan.h lib/pkgconfig/hetplan.pc \
             $(MAN_PAGES) $(BASH_COMPLETIONS) $(ZSH_COMPLETIONS) $(FISH_COMPLETIONS)
# As they lie below PREFIX.
STAGE := $(B)/install
$(INSTALLED_PROGRAMS:%=$(STAGE)/%): $(STAGE)/bin/%: $(B)/%
	@install -D -m 755 $< $@
$(INSTALLED_LIBRARY:%=$(STAGE)/%): $(STAGE)/lib/%: $(B)/library/%
	@install -D -m $(if $(findstring .so,$@),755,644) $< $@
$(INSTALLED_LINKS:%=$(STAGE)/%): $(INSTALLED_PROGRAMS:%=$(STAGE)/%) $(INSTALLED_LIBRARY:%=$(STAGE)/%)
	@ln -sf $(if $(filter %kubectl_complete-htj,$@),kubectl-htj,$(SHARED)) $@
$(STAGE)/include/hetplan.h: planner/hetplan.h
	@install -D -m 644 $< $@
$(STAGE)/lib/pkgconfig/hetplan.pc: FORCE
	@mkdir -p $(dir $@)
	@printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$${prefix}/lib' '' 'Name: hetplan' \
	    'Description: Plans the training of a model on unequal GPUs' 'Version: $(VERSION)' \
	    'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lhetplan' 'Libs.private: -lm' >$@
$(MAN_PAGES:%=$(STAGE)/%): $(STAGE)/share/man/man1/%.1: $(B)/% deploy/manpage
	@mkdir -p $(dir $@)
	@deploy/manpage $< >$@
$(BASH_COMPLETIONS:%=$(STAGE)/%): $(STAGE)/share/bash-completion/completions/%: $(B)/%
	@mkdir -p $(dir $@)
	@$< completion bash >$@
$(ZSH_COMPLETIONS:%=$(STAGE)/%): $(STAGE)/share/zsh/site-functions/_%: $(B)/%
	@mkdir -p $(dir $@)
	@$< completion zsh >$@
$(FISH_COMPLETIONS:%=$(STAGE)/%): $(STAGE)/share/fish/vendor_completions.d/%.fish: $(B)/%
	@mkdir -p $(dir $@)
	@$< completion fish >$@
install: $(INSTALLED:%=$(STAGE)/%) ## install programs, library, man pages, completion below PREFIX (/usr/local)
	@mkdir -p $(addprefix $(DESTDIR)$(PREFIX)/,$(sort $(dir $(INSTALLED))))
	@$(foreach f,$(INSTALLED),cp -P --remove-destination $(STAGE)/$f $(DESTDIR)$(PREFIX)/$f && chmod -f u=rwX$(comma)go=rX $(DESTDIR)$(PREFIX)/$f;)
list-installed:
	@printf '%s\n' $(INSTALLED)
uninstall: ## remove what `make install` has put below PREFIX
	@rm -f $(addprefix $(DESTDIR)$(PREFIX)/,$(INSTALLED))

packages:
	@deploy/apt-packages build test

clean: ## remove what was built
	rm -rf build bench.json
-include $(shell find $(B) -name '*.d' -type f 2>/dev/null)
