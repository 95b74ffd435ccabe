// The command ladder measures the six stages. Run it without arguments for its
// subcommands; most people use it through make.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the round and reports; a second one ends everything.
	context.AfterFunc(ctx, stop)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if errors.Is(err, context.Canceled) {
		err = errors.New("stopped")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ladder: "+oneLine(err))
		os.Exit(1)
	}
}

// oneLine makes sure that an error is a single line, whatever library it came from.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
