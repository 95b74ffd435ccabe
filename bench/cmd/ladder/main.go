// The command ladder measures the six stages. Run it without arguments for its
// subcommands; most people use it through make.
//
// Flags, and which package does what for which of them, belong here; what they do is in the
// packages under bench.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the round and reports; a second one ends everything, but not one that
	// only is the first once more: timeout(1) sends two, to the process and to its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) })
	err := newRoot().ExecuteContext(ctx)
	stop()
	if errors.Is(err, context.Canceled) {
		err = errors.New("stopped")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ladder: "+oneLine(err))
		os.Exit(exitCode(err))
	}
}

// exitCode is 2 for a command line that was not understood, else 1: a check that failed, or
// anything else.
func exitCode(err error) int {
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

const sameSignal = 300 * time.Millisecond

// oneLine makes sure that an error is a single line, whatever library it came from.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
