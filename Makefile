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

.PHONY: help ladder build test race diff vet fmt lint cross ci clean

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

### One stage, 0 to 5
## stage3 run | runs it until Ctrl-C; so does make stage3 alone
## stage3 run ADDR=:8081 | listens there; also WORKERS=2, ARGS=-pin
## stage3 test | tests it, with the common suite
## stage3 race | the same with the race detector
## stage3 build | builds it, into bench/out/bin
## diff A=1 B=2 | what a step changes
# Exit code 1 says that they differ, 141 that a pipe's reader has seen enough.
diff:
	$(if $(and $(A),$(B)),,$(error which two stages? make diff A=1 B=2))
	$(foreach each,$(A) $(B),$(if $(call folder,$(each)),,$(error there is no stage $(each): choose from $(stages))))
	@if command -v git >/dev/null 2>&1; then \
	  git diff --no-index --stat --patch -- $(call folder,$(A)) $(call folder,$(B)); \
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
