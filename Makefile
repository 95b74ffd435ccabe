# What there is to do, with one line each: a bare `make` prints the lines that begin with two hashes.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help ladder compare peers scale mix guard workloads report where flame syscalls allocs stat wrong-turn lab \
  docs docs-build docs-check docs-refresh docs-readmes exercise check hint watch play solution reset submit progress classroom \
  workshop-proof build run test race diff vet fmt lint cross fuzz soak ci clean

GO    ?= go
bin   := bench/out/bin
comma := ,

ifneq ($(MAKECMDGOALS),)
  ifeq ($(shell command -v $(GO) 2>/dev/null),)
    $(error Go is not installed here: see https://go.dev/dl)
  endif
  # No stamp with the commit: go refuses to build in a clone that somebody else owns.
  export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -buildvcs=false)
endif

# "3" or "stage3" to "stage3-native-parser"; nothing if there is no such stage.
folder  = $(patsubst %/,%,$(firstword $(wildcard stage$(patsubst stage%,%,$(firstword $(subst -, ,$(1))))-*/)))
stages := $(sort $(foreach each,$(wildcard stage*-*/),$(firstword $(subst -, ,$(each)))))

# Stops in one line when there is none; `go env CC` names the compiler even when it is missing.
c_compiler = $(if $(shell command -v $(firstword $(shell $(GO) env CC)) 2>/dev/null),,\
  $(error the race detector needs a C compiler: install gcc, as with "apt-get install gcc"))

# Builds the ladder command and becomes it, so that signals reach it alone.
commit  = $(shell git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)
command = $(GO) build -ldflags '-X main.commit=$(commit)' -o $(bin)/ ./bench/cmd/ladder
tool    = @[ -e $(bin)/ladder ] || echo "building the ladder command, which takes a while the first time" >&2; $(command) && exec $(bin)/ladder

# WORKLOAD, QUICK and ARGS (flags of the subcommand, see `ladder NAME --help`) pass through.
on    = $(filter-out 0 no,$(1))
off   = $(filter 0 no,$(1))
flags = $(if $(WORKLOAD),--workload $(WORKLOAD)) $(ARGS)
quick = $(if $(call on,$(QUICK)),--quick) $(flags)
list  = $(subst $(comma), ,$(1))

# In `make stage3 run` the words after the stage say what to do with it.
ifneq ($(filter stage%,$(MAKECMDGOALS)),)

stage := $(firstword $(MAKECMDGOALS))
verbs := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
here  := $(call folder,$(stage))

$(if $(filter stage%,$(stage)),,$(error write the stage first: make $(firstword $(filter stage%,$(verbs))) $(stage)))
$(if $(here),,$(error there is no $(stage): choose one of $(stages)))
$(foreach verb,$(filter-out build run test race,$(verbs)),$(error $(verb) is nothing to do with a stage: make $(stage) run, test, race or build))

.PHONY: $(stage)
$(stage): $(if $(filter-out $(stage),$(MAKECMDGOALS)),,run) ; @:
build: ; @$(GO) build -o $(bin)/ ./$(here) && echo built $(bin)/$(here)
# -foreground: Ctrl-C reaches the server alone; make would take it as a failure.
run:
	@$(GO) build -o $(bin)/ ./$(here)
	@exec $(bin)/$(here) -foreground $(if $(ADDR),-addr $(ADDR)) $(if $(WORKERS),-workers $(WORKERS)) $(ARGS)
test: ; $(GO) test ./$(here) $(ARGS)
race: ; $(c_compiler)CGO_ENABLED=1 $(GO) test -race ./$(here) $(ARGS)

else

help: ; @awk '/^### /{print "\n" substr($$0, 5)} /^## /{split(substr($$0, 4), a, " [|] "); printf "  make %-22s %s\n", a[1], a[2]}' $(firstword $(MAKEFILE_LIST))

### Measure. QUICK=1 and ARGS pass through; WORKLOAD=browser, not to ladder, guard
## ladder | all six stages measured side by side: 4 minutes
## ladder QUICK=1 | a first table, in 45 seconds
## ladder LOAD=wrk | with wrk in place of the built-in load generator
ladder: ; $(tool) run $(if $(LOAD),--load $(LOAD)) $(quick)
## compare A=2 B=3 | one stage against another
## compare BASE=HEAD~1 | stage5 against another commit; also STAGE=4
compare: ; $(tool) compare $(A) $(B) $(if $(BASE),$(or $(STAGE),5) --base $(BASE)) $(quick)
## peers | net/http, fasthttp, gnet, nbio, C beside stages
peers: ; $(tool) peers $(quick)
## scale WORKERS=1,2,4,8 | stage1 with more workers; also STAGE=0,1
scale: ; $(tool) scale $(call list,$(STAGE)) $(if $(WORKERS),--workers $(WORKERS)) $(quick)
## mix A=0 B=3 | stage A with FILES=request.go,head.go of stage B
mix: ; $(tool) mix $(A) $(B) $(if $(FILES),--files $(FILES)) $(quick)
## guard BASE=HEAD~1 | slower than at that commit? ARGS=--strict
guard: ; $(tool) guard $(call list,$(STAGE)) $(if $(BASE),--base $(BASE)) $(quick)
## report FILE=run.json | page, CSV and charts of a run, made anew
report: ; $(tool) report $(or $(FILE),bench/out/ladder.json) $(ARGS)
## workloads | what servers can be driven with
workloads: ; $(tool) workloads

### See where the time goes. WORKLOAD=browser and ARGS pass through
## where | CPU per request by category; GUESS=1 asks first
## flame STAGE=3 | a flame graph; A=2 B=3 for two and what differs
## syscalls STAGE=2 | system calls per request; without STAGE all
## allocs STAGE=1 | heap allocations by site; without STAGE all
## stat STAGE=5 | what CPU and kernel count per request, by perf
## wrong-turn NAME=router | what did not help; without NAME a list
where flame syscalls allocs stat: ; $(tool) $@ $(call list,$(STAGE)) $(A) $(B) $(if $(call on,$(GUESS)),--guess) $(flags)
wrong-turn: ; $(tool) $@ $(NAME) $(ARGS)

## lab NAME=locks | a small question in half a minute, or the list
## lab NAME=locks GUESS=0 | without asking for a guess; also QUICK=1
lab: ; $(tool) lab $(NAME) $(if $(call off,$(GUESS)),--guess=false) $(if $(call on,$(QUICK)),--quick) $(ARGS)

### Read
## docs | builds the site and serves it, also by STAGE=5
## docs-build | the site alone, into docs/_site
## docs-check | links, figures, hunks and commands of the docs
## docs-refresh | measures anew every figure that the docs quote
## docs-readmes | writes figures and tables into the Markdown
docs: ; $(tool) docs serve $(STAGE) $(if $(ADDR),--addr $(ADDR)) $(ARGS)
docs-build docs-check docs-refresh docs-readmes: ; $(tool) docs $(subst docs-,,$@) $(ARGS)

### Workshop. N is the exercise
## exercise | what there is
## exercise NEXT=1 | lays out the first that is not solved
## exercise N=1 | lays out the code that it starts from, in work/
## check N=1 | does it hold? MEASURE=1: and what it brings
## hint N=1 | one hint more each time
## watch N=1 | checks on every save; keys: h hint, n next, q end
## play N=9 CASE=2 | one check again, with every byte
## solution N=1 | the reference, as a diff against your code
## reset N=1 | begins anew, and keeps the old code
## submit N=1 | a small file to hand in
## progress | what is done
## classroom FILES='*.json' | what was handed in, in one table
## workshop-proof | every start fails, every reference passes
# On a terminal the command's own words are the last ones, and not make's about its exit code.
learn = @$(command) && { $(bin)/ladder workshop $(1) || { code=$$?; [ $$code -eq 1 ] && [ -t 1 ] || exit $$code; }; }
exercise: ; $(call learn,exercise $(if $(call on,$(NEXT)),--next) $(ARGS) -- $(N))
hint solution reset submit progress: ; $(call learn,$@ $(ARGS) -- $(N))
watch: ; $(tool) workshop watch $(ARGS) -- $(N)
play: ; $(call learn,play $(if $(CASE),--case $(CASE)) $(if $(SEED),--seed $(SEED)) $(ARGS) -- $(N))
classroom: ; $(call learn,classroom $(ARGS) -- $(FILES))
ifneq ($(N),)
check: ; $(call learn,check $(if $(call on,$(MEASURE)),--measure) $(if $(SEED),--seed $(SEED)) $(ARGS) -- $(N))
else
check: test
endif
# A grader waits as long as it computes.
workshop-proof: ; QPS_LADDER_PROOF=$(or $(N),all) $(GO) test -count=1 -timeout 60m -parallel $$((2 * $$(nproc))) ./bench/workshop -run TestProof $(ARGS)

### One stage, 0 to 5
## stage3 run | runs it until Ctrl-C; so does make stage3 alone
## stage3 run ADDR=:8081 | listens there; also WORKERS=2, ARGS=-pin
## stage3 test | tests it, with the common suite
## stage3 race | the same with the race detector
## stage3 build | builds it, into bench/out/bin
## diff A=1 B=2 | the code that a step changes; also READMES=1
# Copies, as git compares whole folders only, and no packages for go; the code comes first. Word by word in colour; exit code 1 says that they differ.
copies := bench/out/_diff
diff:
	$(foreach each,$(or $(A),A) $(or $(B),B),$(if $(call folder,$(each)),,$(error which two stages? make diff A=1 B=2, of $(stages))))
	@rm -rf $(copies) && for stage in $(call folder,$(A)) $(call folder,$(B)); do \
	  mkdir -p $(copies)/$$stage && cp $$stage/*.go $(if $(call on,$(READMES)),$$stage/README.md) $(copies)/$$stage || exit; \
	done; cd $(copies); echo '*.go' >order; words=; \
	[ -t 1 ] && [ -z "$$NO_COLOR" ] && [ "$$TERM" != dumb ] && words='--color-words=[[:alnum:]_]+|[^[:space:]]'; \
	if command -v git >/dev/null 2>&1; then set -- git diff --no-index -Oorder --stat --patch $$words; else set -- diff -ru; fi; \
	"$$@" $(call folder,$(A)) $(call folder,$(B)); \
	case $$? in 0) echo "no difference" ;; 1 | 141) ;; *) exit 2 ;; esac

### Everything
## test | all tests, in some 3 minutes on 2 CPUs
# make vet is another, and what a debugger wants of a binary takes more time than the rest of linking.
test: ; $(GO) test -vet=off -ldflags=-w $(ARGS) ./...
## race | race detector on all tests; needs a C compiler
race: ; $(c_compiler)CGO_ENABLED=1 $(GO) test -race $(ARGS) ./...
## fuzz TIME=60s | the same bytes to all six, by a fuzzer
# Without the last flag, minimising what it found interesting takes nearly all of the time.
fuzzing = -fuzztime $(or $(TIME),60s) -fuzzminimizetime 5x
fuzz:
	$(GO) test ./shared/suite/differential -run '^$$' -fuzz FuzzDifferential $(fuzzing) $(ARGS)
	$(GO) test ./bench/workshop/internal/grade -run '^$$' -fuzz FuzzFrames $(fuzzing)
	@for target in FuzzJudge FuzzBody FuzzTarget FuzzHost; do $(GO) test ./shared/http1 -run '^$$' -fuzz "^$$target$$" $(fuzzing) || exit; done
## soak TIME=60s | each stage under load, clients come and go
soak:
	$(GO) test -p 1 -count=1 -timeout 0 -v ./stage*-*/ -run '^TestHostile$$/^(soak|churn|many_connections)$$' -parallel 1 \
	  -soak=$(or $(TIME),60s) -churn=20s -connections=10000 $(ARGS)
## build | all six stages and the bench, into bench/out/bin
build: ; @$(GO) build -o $(bin)/ ./stage* && $(command)
## vet | go vet
vet: ; $(GO) vet ./...
## fmt | gofmt, on what is not formatted
fmt: ; gofmt -l -w $(wildcard stage*-* shared bench docs)
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
ci: ; bash .ci/run
## clean | removes what was built, but no results
clean: ; rm -rf $(bin) $(copies)

.DEFAULT:
	$(error $@ is nothing to make: a bare make lists what there is)

endif
