# What there is to do, with one line each: a bare `make` prints the lines that begin with two hashes.

.DEFAULT_GOAL := help
.NOTPARALLEL:

GO  ?= go
bin := bench/out/bin

ifneq ($(MAKECMDGOALS),)
  ifeq ($(shell command -v $(GO) 2>/dev/null),)
    $(error Go is not installed here: see https://go.dev/dl)
  endif
  # No stamp with the commit: go refuses to build in a clone that somebody else owns.
  export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -buildvcs=false)
endif

# "3" or "stage3" to "stage3-native-parser"; nothing if there is no such stage.
folder  = $(patsubst %/,%,$(firstword $(wildcard stage$(patsubst stage%,%,$(1))-*/)))
stages := $(sort $(foreach each,$(wildcard stage*-*/),$(firstword $(subst -, ,$(each)))))

# Stops in one line when there is none; `go env CC` names the compiler even when it is missing.
c_compiler = $(if $(shell command -v $(firstword $(shell $(GO) env CC)) 2>/dev/null),,\
  $(error the race detector needs a C compiler: install gcc, as with "apt-get install gcc"))

# ------------------------------------------------------------------ one stage
# In `make stage3 run` the words after the stage say what to do with it. `run` and the rest are
# targets of their own only then, since `make test` is about everything.

ifneq ($(filter stage%,$(MAKECMDGOALS)),)

stage := $(firstword $(MAKECMDGOALS))
verbs := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
here  := $(if $(filter stage%,$(stage)),$(call folder,$(firstword $(subst -, ,$(stage)))))

ifeq ($(filter stage%,$(stage)),)
  $(error write the stage first: make $(firstword $(filter stage%,$(verbs))) $(stage))
endif
ifeq ($(here),)
  $(error there is no $(stage): choose one of $(stages))
endif
ifneq ($(filter-out build run test race,$(verbs)),)
  $(error $(firstword $(filter-out build run test race,$(verbs))) is nothing to do with a stage: make $(stage) run, test, race or build)
endif

.PHONY: $(stage) build run test race

ifeq ($(verbs),)
$(stage): run
else
$(stage):
	@:
endif

build:
	@$(GO) build -o $(bin)/ ./$(here)
	@echo built $(bin)/$(here)

# exec: the server is make's own child, which make ends when it is told to end. -foreground: Ctrl-C reaches
# the server alone; make would take it as a failure.
run:
	@$(GO) build -o $(bin)/ ./$(here)
	@exec $(bin)/$(here) -foreground $(if $(ADDR),-addr $(ADDR)) $(if $(WORKERS),-workers $(WORKERS)) $(ARGS)

test:
	$(GO) test ./$(here) $(ARGS)

race:
	$(c_compiler)CGO_ENABLED=1 $(GO) test -race ./$(here) $(ARGS)

else
# ----------------------------------------------------------------- everything

comma := ,

.PHONY: help ladder compare peers scale mix guard workloads report FORCE build test race diff vet fmt lint cross ci clean \
  flame where syscalls allocs stat wrong-turn docs docs-build docs-check docs-refresh docs-readmes fuzz soak \
  exercise check hint watch solution reset submit progress classroom workshop-proof

help:
	@while IFS= read -r line; do \
	  case "$$line" in \
	    '### '*) printf '\n%s\n' "$${line#'### '}" ;; \
	    '## '*) line="$${line#'## '}"; printf '  make %-23s %s\n' "$${line%% | *}" "$${line#* | }" ;; \
	  esac; \
	done < $(firstword $(MAKEFILE_LIST))

### Measure
## ladder | all six stages measured side by side: 3 minutes
## ladder QUICK=1 | a first table, in 40 seconds
## ladder LOAD=wrk | with wrk in place of the built-in load generator
ladder:
	@$(GO) build -o $(bin)/ ./bench/cmd/ladder
	@exec $(bin)/ladder run $(if $(filter-out 0 no,$(QUICK)),--quick) $(if $(LOAD),--load $(LOAD)) $(ARGS)

# The rest of the bench. WORKLOAD and ARGS (flags of the subcommand, see `ladder NAME --help`) pass through.
measured = $(if $(WORKLOAD),--workload $(WORKLOAD)) $(if $(filter-out 0 no,$(QUICK)),--quick) $(ARGS)

$(bin)/ladder: FORCE
	@[ -e $@ ] || echo "building the ladder command, which takes a while the first time" >&2
	@$(GO) build -o $(bin)/ ./bench/cmd/ladder

FORCE:

## compare A=2 B=3 | one stage against another; also WORKLOAD=browser
## compare BASE=HEAD~1 | stage5 against itself at another commit; also STAGE=4
compare: $(bin)/ladder
	$(if $(or $(and $(A),$(B)),$(BASE)),,$(error which two? make compare A=2 B=3, or make compare BASE=HEAD~1 STAGE=5))
	@exec $(bin)/ladder compare $(if $(BASE),--base $(BASE) --stage $(or $(STAGE),5),$(A) $(B)) $(measured)

## peers | net/http, fasthttp, gnet, nbio and bare C beside stages
peers: $(bin)/ladder
	@exec $(bin)/ladder peers $(measured)

## scale LOOPS=1,2,4,8 | stage1 with several numbers of workers; also STAGE=0,1
scale: $(bin)/ladder
	@exec $(bin)/ladder scale $(if $(STAGE),--stage $(STAGE)) $(if $(LOOPS),--workers $(LOOPS)) $(measured)

## mix BASE=0 FROM=3 | one stage with FILES=request.go,head.go of another
mix: $(bin)/ladder
	$(if $(and $(BASE),$(FROM),$(FILES)),,$(error mix what? make mix BASE=0 FROM=3 FILES=request.go$(comma)head.go))
	@exec $(bin)/ladder mix --base $(BASE) --from $(FROM) --files $(FILES) $(measured)

## guard BASE=HEAD~1 | is anything slower than at that commit? ARGS=--strict
guard: $(bin)/ladder
	$(if $(BASE),,$(error against which commit? make guard BASE=HEAD~1))
	@exec $(bin)/ladder guard --base $(BASE) $(if $(STAGE),--stage $(STAGE)) $(ARGS)

## workloads | what servers can be driven with
workloads: $(bin)/ladder
	@exec $(bin)/ladder workloads

## report FILE=run.json | page, CSV and charts of a run, made anew
report: $(bin)/ladder
	@exec $(bin)/ladder report $(or $(FILE),bench/out/ladder.json) $(ARGS)

### See where the time goes. WORKLOAD=browser and ARGS pass through
## where | CPU per request by category; GUESS=1 asks first
## flame STAGE=3 | a flame graph; A=2 B=3 for two and what differs
## syscalls STAGE=2 | system calls per request; without STAGE all
## allocs STAGE=1 | heap allocations by site; without STAGE all
## stat STAGE=5 | instructions and cycles per request, by perf
## wrong-turn NAME=router | what did not help; without NAME a list
profiled = $(if $(WORKLOAD),--workload $(WORKLOAD)) $(ARGS)

flame: $(bin)/ladder
	$(if $(or $(STAGE),$(and $(A),$(B))),,$(error of which stage? make flame STAGE=3, or make flame A=2 B=3))
	@exec $(bin)/ladder flame $(or $(STAGE),$(A) $(B)) $(profiled)

where: $(bin)/ladder
	@exec $(bin)/ladder where $(STAGE) $(if $(filter-out 0 no,$(GUESS)),--guess) $(profiled)

syscalls allocs stat: $(bin)/ladder
	@exec $(bin)/ladder $@ $(STAGE) $(profiled)

wrong-turn: $(bin)/ladder
	@exec $(bin)/ladder wrong-turn $(NAME) $(ARGS)

### Read
## docs | builds the site and serves it; STAGE=5: with that server
## docs-build | the site alone, into docs/_site
## docs-check | links, figures, hunks and commands of the docs
## docs-refresh | measures anew every figure that the docs quote
## docs-readmes | writes the READMEs' figures from docs/data
docs: $(bin)/ladder
	@exec $(bin)/ladder docs serve $(if $(STAGE),--stage $(STAGE)) $(if $(ADDR),--addr $(ADDR)) $(ARGS)

docs-build docs-check docs-refresh docs-readmes: $(bin)/ladder
	@exec $(bin)/ladder docs $(subst docs-,,$@) $(ARGS)

### Workshop. N is the exercise
## exercise | what there is
## exercise N=1 | lays out the code that it starts from, in work/
## check N=1 | does it hold? MEASURE=1: and what it brings
## hint N=1 | one hint more each time
## watch N=1 | checks on every save
## solution N=1 | the reference, as a diff against your code
## reset N=1 | begins anew, and keeps the old code
## submit N=1 | a small file to hand in
## progress | what is done
## classroom FILES='*.json' | what was handed in, in one table
## workshop-proof | every start fails, every reference passes
numbered = $(or $(N),$(error which exercise? make $@ N=1; make exercise lists them))

exercise: $(bin)/ladder
	@exec $(bin)/ladder exercise $(N) $(ARGS)

hint watch solution reset submit: $(bin)/ladder
	@exec $(bin)/ladder $@ $(numbered) $(ARGS)

check: $(bin)/ladder
	@exec $(bin)/ladder check $(numbered) $(if $(filter-out 0 no,$(MEASURE)),--measure) $(ARGS)

progress: $(bin)/ladder
	@exec $(bin)/ladder progress

classroom: $(bin)/ladder
	$(if $(FILES),,$(error of which files? make classroom FILES="results/*.json"))
	@exec $(bin)/ladder classroom $(FILES) $(ARGS)

workshop-proof:
	QPS_LADDER_PROOF=$(or $(N),all) $(GO) test -count=1 -timeout 60m ./bench/workshop -run TestProof $(ARGS)

### One stage, 0 to 5
## stage3 run | runs it until Ctrl-C; so does make stage3 alone
## stage3 run ADDR=:8081 | listens there; also WORKERS=2, ARGS=-pin
## stage3 test | tests it, with the common suite
## stage3 race | the same with the race detector
## stage3 build | builds it, into bench/out/bin
## diff A=1 B=2 | what a step changes
# The code comes first, then the README. Exit code 1 says that they differ, 141 that a pipe's reader has seen enough.
diff:
	$(if $(and $(A),$(B)),,$(error which two stages? make diff A=1 B=2))
	$(foreach each,$(A) $(B),$(if $(call folder,$(each)),,$(error there is no stage $(each): choose from $(stages))))
	@if command -v git >/dev/null 2>&1; then \
	  mkdir -p $(bin); printf '%s\n' '*.go' '*.md' > $(bin)/order; \
	  git diff --no-index --stat --patch -O$(bin)/order -- $(call folder,$(A)) $(call folder,$(B)); \
	else \
	  diff -ru $(call folder,$(A)) $(call folder,$(B)); \
	fi; code=$$?; case $$code in \
	  0) echo "no difference" ;; \
	  1 | 141) ;; \
	  *) exit $$code ;; \
	esac

### Everything
## test | all tests, in under 5 minutes on 2 CPUs
test:
	$(GO) test $(ARGS) ./...

## race | race detector on all tests; needs a C compiler
race:
	$(c_compiler)CGO_ENABLED=1 $(GO) test -race $(ARGS) ./...

## fuzz TIME=60s | the same bytes to all six, as a fuzzer thinks of them
# Without the last flag, minimising what it found interesting takes nearly all of the time.
fuzz:
	$(GO) test ./shared/suite/differential -run '^$$' -fuzz FuzzDifferential -fuzztime $(or $(TIME),60s) -fuzzminimizetime 5x $(ARGS)
	@for target in FuzzJudge FuzzBody FuzzTarget FuzzHost; do \
	  $(GO) test ./shared/http1 -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(TIME),60s) -fuzzminimizetime 5x || exit; \
	done

## soak TIME=60s | each stage under full load, clients that come and go
soak:
	$(GO) test -p 1 -count=1 -timeout 0 -v ./stage*-*/ -run '^TestHostile$$/^(soak|churn|many_connections)$$' -parallel 1 \
	  -soak=$(or $(TIME),60s) -churn=20s -connections=10000 $(ARGS)

## build | all six stages and the bench, into bench/out/bin
build:
	@$(GO) build -o $(bin)/ ./stage* ./bench/cmd/ladder

## vet | go vet
vet:
	$(GO) vet ./...

## fmt | gofmt, on what is not formatted
fmt:
	gofmt -l -w $(wildcard stage*-* shared bench docs)

## lint | staticcheck, from a module of its own
lint: $(bin)/staticcheck
	$(bin)/staticcheck ./...

$(bin)/staticcheck: .ci/tools/go.mod .ci/tools/go.sum
	cd .ci/tools && $(GO) build -o "$(CURDIR)/$(bin)/" honnef.co/go/tools/cmd/staticcheck

## cross | compiles for macOS, Windows and Linux on arm64
cross: cross-darwin-arm64 cross-windows-amd64 cross-linux-arm64

cross-%:
	GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) $(GO) build ./...
	GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) $(GO) vet ./...

## ci | all that has to pass before a change is taken
ci:
	bash .ci/run

## clean | removes what was built, but no results
clean:
	rm -rf $(bin)

.DEFAULT:
	$(error $@ is nothing to make: a bare make lists what there is)

endif
